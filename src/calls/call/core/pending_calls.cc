#include "calls/call/core/pending_calls.h"

#include "calls/call/core.h"
#include "foundation/base/poll.h"

namespace hocket::call {

using base::Deadline;
using control::Cause;

// Holds the turn for one step of a thread that makes no call itself. Converts to false if another
// thread has the turn.
class PendingCalls::Step {
 public:
  Step(PendingCalls& calls, TurnLock::Who who)
      : turn_(calls.turn_), is_in_(turn_.try_enter(who, &found_)) {}
  ~Step() {
    if (is_in_) turn_.leave();
  }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  explicit operator bool() const noexcept { return is_in_; }
  // True if another call is in progress, which takes longer than a step.
  bool met_user() const noexcept { return found_ == TurnLock::Who::kUser; }
  // True if this thread itself has the turn, in a call.
  bool is_within_call() const noexcept {
    return found_ == TurnLock::Who::kUser && turn_.is_user_here();
  }

 private:
  TurnLock& turn_;
  TurnLock::Who found_ = TurnLock::Who::kNobody;
  const bool is_in_;
};

bool PendingCalls::wait(Operation& operation, Deadline until) {
  if (!operation.done()) core_.reentry.refuse_in_callback();
  Waiter waiter(core_.job().host(),
                until.is_never() ? Waiter::Patience::kCaller : Waiter::Patience::kTimedCaller);
  waiter.wake_by(std::min(until, *operation.call.deadline));
  const Awaiting awaiting(operation);
  live::LongWait long_wait(core_.long_waits());
  const auto advance = [&](bool look) {
    bool moved = false;
    {
      const Step step(*this, TurnLock::Who::kWaiter);
      if (step.is_within_call()) core_.reentry.refuse_within_call();
      if (!step) {
        waiter.note_contention();
        return;
      }
      const std::uint32_t before = core_.runner().resumptions();
      moved = core_.runner().advance(look) || core_.runner().resumptions() != before;
      try {
        if (look && core_.job().interrupted()) core_.failures.raise(core_.inquiry().interruption());
        if (look) look_for_returned(operation);
      } catch (...) {
        core_.runner().fail_all(std::current_exception());
      }
      if (look && !operation.done()) long_wait.look(operation.call.awaited, operation.call.shown);
    }
    if (moved) waiter.moved();
  };
  const auto is_over = [&](bool look) {
    if (operation.done()) return true;
    if (core_.forks().forked()) core_.raise_unusable();
    advance(look);
    return operation.done() || (look && until.has_passed());
  };
  base::wait_until(is_over, waiter);
  if (!operation.done()) return false;
  long_wait.over(operation.error() ? live::LongWait::End::kFailed : live::LongWait::End::kWell);
  return true;
}

// Fails all pending calls if `operation` waits for a rank that has returned from its task. Makes
// one step before, because data that the rank had sent may have arrived. The caller has the turn.
void PendingCalls::look_for_returned(Operation& operation) noexcept {
  if (operation.done()) return;
  const auto returned = core_.inquiry().find_returned(operation.call.awaited);
  if (!returned) return;
  core_.runner().advance(true);
  if (operation.done()) return;
  try {
    core_.failures.raise(*returned);
  } catch (...) {
    core_.runner().fail_all(std::current_exception());
  }
}

// Checks one queued call and one message that have callbacks, because event loops wait by
// callbacks.
void PendingCalls::look_for_returned() noexcept {
  std::shared_ptr<Operation> call, message;
  const auto note = [this](std::shared_ptr<Operation>& found, const auto& operation) {
    if (!found && operation->has_callback() &&
        core_.inquiry().find_returned(operation->call.awaited)) {
      found = operation;
    }
  };
  for (const auto& operation : core_.runner().queue()) note(call, operation);
  core_.runner().for_each_message([&](const auto& operation) { note(message, operation); });
  if (call) look_for_returned(*call);
  if (message) look_for_returned(*message);
}

void PendingCalls::poke() {
  if (core_.forks().forked()) core_.raise_unusable();
  if (core_.reentry.holds_turn_in_callback() || is_step_here()) return;
  // Another thread's step ends soon, but it may have looked before the awaited event came. So this
  // yields and tries again.
  constexpr int kYields = 8;  // limited, because that step may run a user's operator
  const auto is_over = [this, looks = 0](bool) mutable {
    const Step step(*this, TurnLock::Who::kWaiter);
    if (step) core_.runner().advance(true);
    return step || step.met_user() || ++looks > TurnLock::kStepsMet + kYields;
  };
  base::Naps pace(Duration::zero(), TurnLock::kStepsMet);
  base::wait_until(is_over, pace);
}

bool PendingCalls::withdraw(Operation& receive) {
  core_.refuse_forked();
  const CallGuard guard(core_);
  return !receive.done() && core_.runner().withdraw(receive);
}

void PendingCalls::finish(Operation& operation) {
  live::LongWait wait(core_.long_waits());
  core_.runner().advance_until([&] { return operation.done(); },
                               Deadline::never(),
                               [&] {
                                 wait.look(operation.call.awaited, operation.call.shown);
                                 look_for_returned(operation);
                               });
  wait.over(operation.error() ? live::LongWait::End::kFailed : live::LongWait::End::kWell);
  operation.rethrow();
}

// The turn guards `is_watched_`: the progress thread clears it in the turn, when no call is
// pending.
void PendingCalls::watch(const Operation& operation) {
  if (operation.done() || is_watched_) return;
  is_watched_ = true;
  visits_seen_.store(core_.runner().visits(), std::memory_order_relaxed);
  core_.job().watch(core_.shared_from_this());
}

namespace {

// Number of visits by threads of the program between two looks of the progress thread. From this
// number on, the calls need no help by the progress thread.
constexpr std::uint32_t kAttends = 8;

}  // namespace

// True if threads of the program move the calls often enough. Called in the progress thread.
bool PendingCalls::is_attended() noexcept {
  const std::uint32_t now = core_.runner().visits();
  const std::uint32_t seen = visits_seen_.exchange(now, std::memory_order_relaxed);
  return now - seen >= kAttends && !awaited_gpu_;
}

PendingCalls::Progress PendingCalls::progress() noexcept {
  if (is_attended()) return Progress::kAttended;
  bool moved = false, left = false;
  {
    const Step step(*this, TurnLock::Who::kProgress);
    if (!step) return Progress::kIdle;
    moved = core_.is_open() && core_.runner().advance(true);
    if (core_.is_open() && core_.job().host().tasks.is_in_task()) look_for_returned();
    if (core_.is_open()) core_.stream_waits.look_at_streams();
    left = core_.runner().busy();
    if (!left) is_watched_ = false;
    awaited_gpu_ = left && core_.awaits_gpu();
    visits_seen_.store(core_.runner().visits(), std::memory_order_relaxed);
  }
  // A waiting thread may have gone to sleep while this thread had the turn.
  control::HostControl& host = core_.job().host();
  if (moved) host.doorbells.ring(host.self());
  if (!left) return Progress::kNothingLeft;
  if (moved) return Progress::kMoved;
  return awaited_gpu_ ? Progress::kAwaitsGpu : Progress::kIdle;
}

void PendingCalls::abandon(Operation& operation) noexcept {
  if (core_.forks().forked()) return;
  core_.group().fail(core_.failures.of(operation, Cause::kWorkDropped));
  // This is a callback, so no other thread makes a step before it returns.
  if (core_.reentry.holds_turn_in_callback()) {
    try {
      core_.failures.raise_failure();
    } catch (...) {
      core_.runner().fail_all(std::current_exception());
      core_.runner().give_up(operation, std::current_exception());  // it may be in no list by now
    }
    return;
  }
  const auto is_over = [&] {
    poke();
    return operation.done();
  };
  base::poll_until(is_over, Deadline::never(), Duration::zero());
}

}  // namespace hocket::call
