// The end of a communicator's calls on GPUs, when no more calls are made.
#include <algorithm>

#include "calls/call/operation.h"
#include "calls/call/waiter.h"
#include "calls/device/calls.h"

namespace hocket::device {

using base::Deadline;

namespace {

// The driver ends when the process exits.
bool has_ended(const cuda::Driver& driver) {
  int device = 0;
  return driver.ctx_get_device(&device) == cuda::Result::kDeinitialized;
}

}  // namespace

// Moves them, because no other thread does meanwhile.
void DeviceCalls::finish_staged() noexcept {
  owner_.runner().advance_until([this] {
    return relay_.is_idle() && std::ranges::none_of(owner_.runner().queue(), [](const auto& call) {
             return call->carrying != nullptr;
           });
  });
}

// The envelopes of the other ends are on their way.
void DeviceCalls::finish_envelopes() noexcept {
  if (!staging_) return;
  owner_.runner().advance_until([this] { return envelopes_.is_idle(); },
                                Deadline::in(owner_.deadline()));
}

// Work on the GPU ends by itself, or the watch ends it. But earlier work of the program may take
// any time.
void DeviceCalls::await_last() {
  const Duration allowed = owner_.deadline();
  const Deadline deadline = Deadline::in(allowed);
  const auto fail = [this](const control::Failure& failure) {
    owner_.lose_device_call();
    owner_.group().fail(failure);
  };
  try {
    const cuda::DeviceGuard guard(*device_);
    while (!order_->await_last(std::min(deadline, Deadline::in(std::chrono::milliseconds(20))))) {
      if (job_.interrupted()) return fail(owner_.inquiry().interruption());
      if (deadline.has_passed()) {
        return fail(owner_.inquiry().lateness({.sequence = owner_.ledger().last()}, allowed));
      }
    }
  } catch (const DeviceError& error) {
    if (has_ended(device_->driver())) return;
    fail({.cause = control::Cause::kDevice,
          .reporter = owner_.rank(),
          .culprit = owner_.rank(),
          .sequence = owner_.ledger().last(),
          .text = error.what()});
  }
}

void DeviceCalls::count_streams() noexcept {
  if (times_) times_->look();
}

void DeviceCalls::finish() noexcept {
  if (!staging_) return;
  // Waits here must not be part of a capture of other streams.
  const cuda::OutsideCapture outside(device_->driver());
  finish_staged();
  await_last();
  count_streams();
  owner_.runner().advance(true);  // compares the envelopes that have arrived
  if (watch_) watch_->look_at_result();
}

void DeviceCalls::close() noexcept {
  if (!staging_) return;
  const std::shared_ptr<const cuda::DeviceContext> device = device_;
  const cuda::OutsideCapture outside(device->driver());
  await_last();
  count_streams();
  if (watch_) watch_->close();
  const cuda::DeviceGuard guard(*device_);
  engines_.reset();
  watch_.reset();
  staging_.reset();
  order_.reset();
  times_.reset();
  device_.reset();
}

}  // namespace hocket::device
