// The part of a communicator that concerns GPUs: the hooks of call::Core, and marks on streams.
#include "calls/device/calls.h"
#include "calls/device/host_copies.h"
#include "calls/world/world.h"

namespace hocket::world {

using call::CallGuard;
using call::Operation;

device::DeviceCalls& CommunicatorImpl::devices() {
  if (!devices_) devices_ = std::make_unique<device::DeviceCalls>(*this, *world_);
  return *devices_;
}

bool CommunicatorImpl::awaits_gpu() const noexcept {
  return devices_ && devices_->launcher.awaits_gpu();
}

void CommunicatorImpl::look_at_device_result() noexcept {
  if (devices_) devices_->session.look_at_result();
}

bool CommunicatorImpl::refuses_too_late() const noexcept {
  return devices_ && devices_->session.meets_other_hosts();
}

bool CommunicatorImpl::has_device() const noexcept {
  return devices_ && devices_->session.gpu() != nullptr;
}

std::shared_ptr<Operation> CommunicatorImpl::start_on_copies(const device::Copies& copies,
                                                             const device::PlanOnCopies& plan) {
  const CallGuard guard(*this, copies.shown.kind);
  require_usable();
  require_members();
  return devices().collectives.start_on_copies(copies, plan);
}

std::unique_ptr<device::HostCopies> CommunicatorImpl::copy_to_host(
    ConstArrayView in, ArrayView out, const std::optional<StreamRef>& stream) {
  const CallGuard guard(*this);
  require_usable();
  return devices().collectives.copy_to_host(in, out, stream);
}

std::shared_ptr<Operation> CommunicatorImpl::mark_stream(StreamRef stream) {
  const CallGuard guard(*this);
  require_usable();
  return devices().launcher.mark(stream);
}

}  // namespace hocket::world
