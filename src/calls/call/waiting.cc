// Waits for pending calls: a program's wait for its Work, and the progress thread's for all.
#include "calls/call/core.h"
#include "foundation/base/poll.h"

namespace hocket::call {

using base::Deadline;
using control::Cause;

// A step of a thread that takes no part as a user; false: another thread is in.
class Core::Step {
 public:
  Step(Core& core, TurnLock::Who who) : core_(core), is_in_(core.turn_.try_enter(who, &found_)) {
    if (is_in_) core_.stepper_.store(base::this_thread(), std::memory_order_relaxed);
  }
  ~Step() {
    if (!is_in_) return;
    core_.stepper_.store(0, std::memory_order_relaxed);
    core_.turn_.leave();
  }
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  explicit operator bool() const noexcept { return is_in_; }
  // True if another call is in progress, which takes longer than a step.
  bool met_user() const noexcept { return found_ == TurnLock::Who::kUser; }
  // True if this thread is already inside, as a user.
  bool is_within_call() const noexcept {
    return found_ == TurnLock::Who::kUser && core_.turn_.is_user_here();
  }

 private:
  Core& core_;
  TurnLock::Who found_ = TurnLock::Who::kNobody;
  const bool is_in_;
};

bool Core::wait(Operation& operation, Deadline until) {
  if (!operation.done()) refuse_in_callback();
  Waiter waiter(job_->host(),
                until.is_never() ? Waiter::Patience::kCaller : Waiter::Patience::kTimedCaller);
  waiter.wake_by(std::min(until, *operation.call.deadline));
  const Awaiting awaiting(operation);
  live::LongWait long_wait(*long_waits_);
  const auto advance = [&](bool look) {
    bool moved = false;
    {
      const Step step(*this, TurnLock::Who::kWaiter);
      if (step.is_within_call()) refuse_within_call();
      if (!step) {
        waiter.met_another();
        return;
      }
      const std::uint32_t before = runner_->resumptions();
      moved = runner_->advance(look) || runner_->resumptions() != before;
      try {
        if (look && job_->interrupted()) raise(inquiry_->interruption());
        if (look) look_for_returned(operation);
      } catch (...) {
        runner_->fail_all(std::current_exception());
      }
      if (look && !operation.done()) long_wait.look(operation.call.awaited, operation.call.shown);
    }
    if (moved) waiter.moved();
  };
  const auto is_over = [&](bool look) {
    if (operation.done()) return true;
    if (forks_.forked()) raise_unusable();
    advance(look);
    return operation.done() || (look && until.has_passed());
  };
  base::wait_until(is_over, waiter);
  if (!operation.done()) return false;
  long_wait.over(operation.error() ? live::LongWait::End::kFailed : live::LongWait::End::kWell);
  return true;
}

// Looks in the turn for ranks that have returned, for a call that the program waits for. Data that
// such a rank sent before may have arrived since.
void Core::look_for_returned(Operation& operation) noexcept {
  if (operation.done()) return;
  const auto returned = inquiry_->find_returned(operation.call.awaited);
  if (!returned) return;
  runner_->advance(true);
  if (operation.done()) return;
  try {
    raise(*returned);
  } catch (...) {
    runner_->fail_all(std::current_exception());
  }
}

// The same for calls whose end a callback awaits, as event loops do.
void Core::look_for_returned() noexcept {
  std::shared_ptr<Operation> call, message;
  const auto note = [this](std::shared_ptr<Operation>& found, const auto& operation) {
    if (!found && operation->has_callback() && inquiry_->find_returned(operation->call.awaited)) {
      found = operation;
    }
  };
  for (const auto& operation : runner_->queue()) note(call, operation);
  runner_->for_each_message([&](const auto& operation) { note(message, operation); });
  if (call) look_for_returned(*call);
  if (message) look_for_returned(*message);
}

// The program may wait for a stream, which gives no warnings. So this thread warns about the call
// that the stream waits for.
void Core::look_at_streams() noexcept {
  const auto now = runner_->of_gpus();
  if (held_wait_ && (now == nullptr || now != held_.lock())) {
    held_wait_->over(group_->failed() ? live::LongWait::End::kFailed : live::LongWait::End::kWell);
    held_wait_.reset();
  }
  if (now == nullptr) return;
  if (!held_wait_) {
    held_ = now;
    held_wait_.emplace(*long_waits_, live::LongWait::Of::kStream);
  }
  held_wait_->look(now->call.awaited, now->call.shown);
}

void Core::poke() {
  if (forks_.forked()) raise_unusable();
  if (holds_turn_in_callback() || stepper_.load(std::memory_order_relaxed) == base::this_thread())
    return;
  // Another thread's step is mostly soon over, and it may have looked before the awaited event
  // came.
  constexpr int kYields = 8;  // it may also run a user's operator, for which this does not wait
  const auto is_over = [this, looks = 0](bool) mutable {
    const Step step(*this, TurnLock::Who::kWaiter);
    if (step) runner_->advance(true);
    return step || step.met_user() || ++looks > TurnLock::kStepsMet + kYields;
  };
  base::Naps pace(Duration::zero(), TurnLock::kStepsMet);
  base::wait_until(is_over, pace);
}

namespace {

// A thread that starts or moves calls so often between two looks of the progress thread needs no
// help.
constexpr std::uint32_t kAttends = 8;

}  // namespace

// In the progress thread.
bool Core::is_attended() noexcept {
  const std::uint32_t now = runner_->visits();
  const std::uint32_t seen = visits_seen_.exchange(now, std::memory_order_relaxed);
  return now - seen >= kAttends && !awaited_gpu_;
}

Core::Progress Core::progress() noexcept {
  if (is_attended()) return Progress::kAttended;
  bool moved = false, left = false;
  {
    const Step step(*this, TurnLock::Who::kProgress);
    if (!step) return Progress::kIdle;
    moved = open_ && runner_->advance(true);
    if (open_ && job_->host().is_in_task()) look_for_returned();
    if (open_) look_at_streams();
    left = runner_->busy();
    if (!left) is_watched_ = false;
    awaited_gpu_ = left && awaits_gpu();
    visits_seen_.store(runner_->visits(), std::memory_order_relaxed);
  }
  // A waiting thread may have found this thread at work, and gone to sleep.
  control::HostControl& host = job_->host();
  if (moved) host.ring(host.self());
  if (!left) return Progress::kNothingLeft;
  if (moved) return Progress::kMoved;
  return awaited_gpu_ ? Progress::kAwaitsGpu : Progress::kIdle;
}

void Core::abandon(Operation& operation) noexcept {
  if (forks_.forked()) return;
  control::Failure failure = own_failure(Cause::kWorkDropped);
  failure.sequence = operation.sequence();
  failure.signature = operation.call.shown;
  group_->fail(failure);
  // In a callback no other thread can take a step before this returns, and here no thread is at
  // one.
  if (holds_turn_in_callback()) {
    try {
      raise_failure();
    } catch (...) {
      runner_->fail_all(std::current_exception());
      runner_->give_up(operation, std::current_exception());  // one of those being given up
    }
    return;
  }
  const auto is_over = [&] {
    poke();
    return operation.done();
  };
  base::poll_until(is_over, Deadline::never(), Duration::zero());
}

// --- Calls on streams ---------------------------------------------------------------------------

namespace {

constexpr auto kStreamPoll = std::chrono::microseconds(20);
// Time limit for the kernels of a failed call, which see the failure within 50 ms.
constexpr auto kFailedStreamWork = std::chrono::milliseconds(500);

}  // namespace

void Core::check_stream_work(Operation& operation) {
  if (operation.done()) operation.rethrow();
  if (!open_ || !group_->failed()) return;
  told();  // the failure may have been found by another thread's step
  raise_failure();
}

// If the driver cannot tell the end of a call, it has failed for all ranks.
bool Core::has_passed(Operation& operation) {
  try {
    return operation.mark->passed();
  } catch (const DeviceError& error) {
    if (!open_) throw;
    control::Failure failure = own_failure(Cause::kDevice, error.what());
    failure.sequence = operation.sequence();
    failure.signature = operation.plan.call.signature;
    group_->fail(failure);
    told();
    raise_failure();
  }
}

bool Core::test_stream_work(Operation& operation) {
  if (!operation.done()) poke();
  if (!operation.done()) return false;
  if (operation.error()) return true;
  const bool passed = has_passed(operation);
  if (passed) look_at_device_result();
  return passed;
}

bool Core::wait_stream_work(Operation& operation, Deadline until) {
  constexpr int kEagerPolls = 2000;
  // Messages have no number, so the missing rank is not known here.
  live::LongWait long_wait(*long_waits_);
  const bool may_warn = operation.sequence() != 0;
  const auto is_over = [&, polls = 0]() mutable {
    if (has_passed(operation)) return true;
    check_stream_work(operation);
    if (polls++ < kEagerPolls) return false;
    if (job_->interrupted()) raise(inquiry_->interruption());
    if (may_warn) {
      long_wait.look({.sequence = operation.sequence()}, operation.plan.call.signature);
    }
    return false;
  };
  try {
    if (!operation.done() && !wait(operation, until)) return false;
    if (!base::poll_until(is_over, until, kStreamPoll, kEagerPolls)) return false;
    long_wait.over(live::LongWait::End::kWell);
    look_at_device_result();
    check_stream_work(operation);
  } catch (...) {
    await_failed_stream_work(operation);
    throw;
  }
  return true;
}

// When the program has seen a call's failure, it may use the arrays again, so this waits for the
// call's kernels. Earlier work of the program on the stream may take any time.
void Core::await_failed_stream_work(const Operation& operation) noexcept {
  look_at_device_result();
  const auto is_over = [&] {
    try {
      return operation.mark->passed();
    } catch (const DeviceError&) {  // nothing runs there any more
      return true;
    }
  };
  base::poll_until(is_over, Deadline::in(kFailedStreamWork), kStreamPoll);
}

}  // namespace hocket::call
