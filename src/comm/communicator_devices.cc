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

Deadline CommunicatorImpl::next_look() const noexcept {
  return devices_ && devices_->awaits_gpu() ? Deadline::in(kGpuLook) : Deadline::never();
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
  if (operation.done()) operation.rethrow();
  if (!open_ || !control_->failed()) return;
  told();  // whoever may be at a step
  raise_failure();
}

// A call whose end the driver cannot tell has not ended well, for nobody.
bool CommunicatorImpl::has_passed(Operation& operation) {
  try {
    return operation.device->passed();
  } catch (const DeviceError& error) {
    if (!open_) throw;
    control_->fail({.code = ErrorCode::kDevice,
                    .reporter = rank(),
                    .culprit = rank(),
                    .sequence = operation.sequence(),
                    .signature = operation.plan.call.signature,
                    .text = error.what()});
    told();
    raise_failure();
  }
}

bool CommunicatorImpl::test_device_work(Operation& operation) {
  if (!operation.done()) poke();
  if (!operation.done()) return false;
  if (operation.error()) return true;
  const bool passed = has_passed(operation);
  if (passed) devices_->look_at_result();
  return passed;
}

bool CommunicatorImpl::wait_device_work(Operation& operation, Deadline until) {
  if (!operation.done() && !wait(operation, until)) return false;
  constexpr int kEagerPolls = 2000;
  for (int polls = 0; !has_passed(operation); ++polls) {
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
