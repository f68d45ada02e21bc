#include "calls/call/waiter.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "calls/call/turn_lock.h"

namespace hocket::call {

bool Waiter::lost_turn(Clock::time_point before) noexcept {
  const auto now = Clock::now();
  if (now - before < kLostTurn) return false;
  const auto ns = [](Clock::time_point at) {
    return std::chrono::nanoseconds(at.time_since_epoch()).count();
  };
  processors_.note_lost_turn(ns(before), ns(now));
  return processors_.is_busy();
}

void Waiter::note_contention() noexcept {
  if (++contentions_ % TurnLock::kStepsMet != 0) return;
  if (gives_way_ && processors_.is_busy()) {
    polls_ = std::max(polls_, spins_);  // the other thread rings the bell when it has moved
                                        // something
  } else {
    sched_yield();
  }
}

bool Waiter::keeps_others_away() noexcept {
  const auto before = std::exchange(looked_at_, Clock::now());
  const bool lost = lost_turn(before);
  const bool is_slow = looked_at_ - before > kSlowPolls;
  return processors_.shares_processor(asks_) || lost || is_slow;
}

bool Waiter::pause_slowly() noexcept {
  // On a busy machine each yield costs a scheduling round, while a sleeper is woken soon.
  const bool is_busy = gives_way_ && processors_.is_busy();
  const std::uint32_t yields = is_busy                               ? 0
                               : processors_.may_spin() && !crowded_ ? kYields
                                                                     : kCrowdedYields;
  if (polls_ < spins_ + yields) {
    const auto before = gives_way_ ? Clock::now() : Clock::time_point::max();
    sched_yield();
    if (gives_way_) lost_turn(before);
    if (!processors_.may_spin() && asks_ == Asks::kCaller) processors_.tell_processor();
    // The first yield causes no check for failures, even if it was long. Mostly the awaited rank
    // had the processor meanwhile, and the call can go on.
    return polls_ > spins_ + 1 || pauses_ % kYieldsALook == 0;
  }
  // Announce the sleep; the caller polls once more before the next pause sleeps.
  ticket_ = doorbells_.before_sleep();
  armed_ = true;
  return true;
}

bool Waiter::sleep() noexcept {
  doorbells_.sleep(ticket_, deadline_, more_);
  disarm();
  polls_ = spins_;  // a few more yields, then sleep again
  return true;
}

void Waiter::disarm() noexcept {
  if (armed_) {
    doorbells_.after_sleep();
    armed_ = false;
  }
}

}  // namespace hocket::call
