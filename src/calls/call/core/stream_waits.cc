#include "calls/call/core/stream_waits.h"

#include "calls/call/core.h"
#include "foundation/base/poll.h"

namespace hocket::call {

using base::Deadline;
using control::Cause;

namespace {

constexpr auto kStreamPoll = std::chrono::microseconds(20);
// Time limit for the kernels of a failed call, which see the failure within 50 ms.
constexpr auto kFailedStreamWork = std::chrono::milliseconds(500);

}  // namespace

void StreamWaits::check(Operation& operation) {
  if (operation.done()) operation.rethrow();
  if (!core_.is_open() || !core_.group().failed()) return;
  core_.failures.note_seen();  // the failure may have been found by another thread's step
  core_.failures.raise_failure();
}

// Returns whether the stream has passed the call. If the driver reports an error, the call has
// failed for all ranks.
bool StreamWaits::has_passed(Operation& operation) {
  try {
    return operation.mark->passed();
  } catch (const DeviceError& error) {
    if (!core_.is_open()) throw;
    core_.group().fail(core_.failures.of(operation, Cause::kDevice, error.what()));
    core_.failures.note_seen();
    core_.failures.raise_failure();
  }
}

bool StreamWaits::test(Operation& operation) {
  if (!operation.done()) core_.pending.poke();
  if (!operation.done()) return false;
  if (operation.error()) return true;
  const bool passed = has_passed(operation);
  if (passed) core_.look_at_device_result();
  return passed;
}

bool StreamWaits::wait(Operation& operation, Deadline until) {
  constexpr int kEagerPolls = 2000;
  // Messages have no sequence number. So the missing rank is not known here, and there is no
  // warning.
  live::LongWait long_wait(core_.long_waits());
  const bool may_warn = operation.sequence() != 0;
  const auto is_over = [&, polls = 0]() mutable {
    if (has_passed(operation)) return true;
    check(operation);
    if (polls++ < kEagerPolls) return false;
    if (core_.job().interrupted()) core_.failures.raise(core_.inquiry().interruption());
    if (may_warn) {
      long_wait.look({.sequence = operation.sequence()}, operation.call.shown);
    }
    return false;
  };
  try {
    if (!operation.done() && !core_.pending.wait(operation, until)) return false;
    if (!base::poll_until(is_over, until, kStreamPoll, kEagerPolls)) return false;
    long_wait.over(live::LongWait::End::kWell);
    core_.look_at_device_result();
    check(operation);
  } catch (...) {
    await_failed(operation);
    throw;
  }
  return true;
}

// Waits for the kernels of a failed call, because the program may use the arrays again after it has
// seen the failure. The wait is limited, because earlier work on the stream may take any time.
void StreamWaits::await_failed(const Operation& operation) noexcept {
  core_.look_at_device_result();
  const auto is_over = [&] {
    try {
      return operation.mark->passed();
    } catch (const DeviceError&) {  // nothing runs there any more
      return true;
    }
  };
  base::poll_until(is_over, Deadline::in(kFailedStreamWork), kStreamPoll);
}

void StreamWaits::look_at_streams() noexcept {
  const auto now = core_.runner().of_gpus();
  if (held_wait_ && (now == nullptr || now != held_.lock())) {
    held_wait_->over(core_.group().failed() ? live::LongWait::End::kFailed
                                            : live::LongWait::End::kWell);
    held_wait_.reset();
  }
  if (now == nullptr) return;
  if (!held_wait_) {
    held_ = now;
    held_wait_.emplace(core_.long_waits(), live::LongWait::Of::kStream);
  }
  held_wait_->look(now->call.awaited, now->call.shown);
}

}  // namespace hocket::call
