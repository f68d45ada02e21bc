// The end of a communicator's calls on GPUs, when no more calls are made.
#include <algorithm>

#include "calls/call/operation.h"
#include "calls/call/waiter.h"
#include "calls/device/session.h"

namespace hocket::device {

using base::Deadline;

namespace {

// Returns whether the driver has ended, which happens when the process exits.
bool has_ended(const cuda::Driver& driver) {
  int device = 0;
  return driver.ctx_get_device(&device) == cuda::Result::kDeinitialized;
}

}  // namespace

// Moves the calls and messages that the host carries until all have ended. No other thread moves
// them meanwhile.
void DeviceSession::finish_staged() noexcept {
  owner_.runner().advance_until([this] {
    return relay_.is_idle() && std::ranges::none_of(owner_.runner().queue(), [](const auto& call) {
             return call->carrying != nullptr;
           });
  });
}

// Waits for the last call on the GPU, for at most the communicator's deadline. A call ends by
// itself, or the watch ends it. But earlier work of the program on the stream may take any time.
void DeviceSession::await_last() {
  const Duration allowed = owner_.deadline();
  const Deadline deadline = Deadline::in(allowed);
  const auto fail = [this](const control::Failure& failure) {
    owner_.failures.lose_device_call();
    owner_.group().fail(failure);
  };
  try {
    const cuda::DeviceGuard guard(*gpu_);
    while (!streams_->order.await_last(
        std::min(deadline, Deadline::in(std::chrono::milliseconds(20))))) {
      if (job_.interrupted()) return fail(owner_.inquiry().interruption());
      if (deadline.has_passed()) {
        return fail(owner_.inquiry().lateness({.sequence = owner_.ledger().last()}, allowed));
      }
    }
  } catch (const DeviceError& error) {
    if (has_ended(gpu_->driver())) return;
    fail({.cause = control::Cause::kDevice,
          .reporter = owner_.rank(),
          .culprit = owner_.rank(),
          .sequence = owner_.ledger().last(),
          .text = error.what()});
  }
}

void DeviceSession::finish() noexcept {
  if (!streams_) return;
  // The waits here must not be part of a capture of other streams.
  const cuda::OutsideCapture outside(gpu_->driver());
  finish_staged();
  await_last();
  if (streams_->times) streams_->times->look();
  owner_.runner().advance(true);  // compares the envelopes that have arrived
  if (watch_) watch_->look_at_result();
}

void DeviceSession::close() noexcept {
  if (!streams_) return;
  const std::shared_ptr<const cuda::DeviceContext> device = gpu_;
  const cuda::OutsideCapture outside(device->driver());
  await_last();
  if (streams_->times) streams_->times->look();
  if (watch_) watch_->close();
  const cuda::DeviceGuard guard(*gpu_);
  engines_.reset();
  watch_.reset();
  streams_.reset();
  gpu_.reset();
}

}  // namespace hocket::device
