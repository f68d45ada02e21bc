// What a communicator does of its calls on GPUs itself: prepared ones, and what Work asks.
#include <thread>

#include "comm/device_calls.h"
#include "comm/operation.h"
#include "comm/world.h"

namespace hocket::comm {

using base::Deadline;

DeviceCalls& CommunicatorImpl::devices() {
  if (!devices_) devices_ = std::make_unique<DeviceCalls>(*this);
  return *devices_;
}

bool CommunicatorImpl::has_device() const noexcept { return devices_ && devices_->device() >= 0; }

DevicePlan CommunicatorImpl::prepare_device(const Request& request, CallStorage& storage) {
  const Seat seat(*this);
  require_usable();
  return devices().checked(request, storage);
}

void CommunicatorImpl::run_prepared_device(DevicePlan& plan, const Request& request) {
  const Seat seat(*this);
  require_usable();
  require_members();
  devices_->run_prepared(plan, request);
}

std::shared_ptr<Operation> CommunicatorImpl::start_prepared_device(DevicePlan& plan,
                                                                   const Request& request) {
  const Seat seat(*this);
  require_usable();
  require_members();
  return devices_->start_prepared(plan, request);
}

std::shared_ptr<Operation> CommunicatorImpl::mark_stream(StreamRef stream) {
  const Seat seat(*this);
  require_usable();
  return devices().mark(stream);
}

void CommunicatorImpl::check_device_work(Operation& operation) {
  if (operation.done() && operation.error()) std::rethrow_exception(operation.error());
  if (open_ && control_->failed()) raise_failure();
}

bool CommunicatorImpl::test_device_work(Operation& operation) {
  if (!operation.done()) poke();
  if (!operation.done()) return false;
  if (operation.error()) return true;
  const bool passed = operation.device->passed();
  if (passed) devices_->look_at_result();
  return passed;
}

bool CommunicatorImpl::wait_device_work(Operation& operation, Deadline until) {
  if (!operation.done() && !wait(operation, until)) return false;
  constexpr int kEagerPolls = 2000;
  for (int polls = 0; !operation.device->passed(); ++polls) {
    check_device_work(operation);
    if (until.has_passed()) return false;
    if (polls < kEagerPolls) continue;
    if (world_->interrupted()) raise(interruption());
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
  devices_->look_at_result();
  check_device_work(operation);
  return true;
}

}  // namespace hocket::comm
