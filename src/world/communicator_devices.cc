// What a communicator does of its calls on GPUs itself: prepared ones, and what its runner asks.
#include "world/world.h"
#include "device/calls.h"

namespace hocket::world {

using call::CallGuard;
using call::CallStorage;
using call::Operation;
using call::Request;

device::DeviceCalls& CommunicatorImpl::devices() {
  if (!devices_) devices_ = std::make_unique<device::DeviceCalls>(*this, *world_);
  return *devices_;
}

bool CommunicatorImpl::awaits_gpu() const noexcept { return devices_ && devices_->awaits_gpu(); }

void CommunicatorImpl::look_at_device_result() noexcept {
  if (devices_) devices_->look_at_result();
}

bool CommunicatorImpl::has_device() const noexcept { return devices_ && devices_->device() >= 0; }

device::DevicePlan CommunicatorImpl::prepare_device(const Request& request, CallStorage& storage) {
  const CallGuard guard(*this);
  require_usable();
  return devices().checked(request, storage);
}

void CommunicatorImpl::run_prepared_device(device::DevicePlan& plan, const Request& request) {
  const CallGuard guard(*this);
  require_usable();
  require_members();
  devices_->run_prepared(plan, request);
}

std::shared_ptr<Operation> CommunicatorImpl::start_prepared_device(device::DevicePlan& plan,
                                                                   const Request& request) {
  const CallGuard guard(*this);
  require_usable();
  require_members();
  return devices_->start_prepared(plan, request);
}

std::shared_ptr<Operation> CommunicatorImpl::mark_stream(StreamRef stream) {
  const CallGuard guard(*this);
  require_usable();
  return devices().mark(stream);
}

}  // namespace hocket::world
