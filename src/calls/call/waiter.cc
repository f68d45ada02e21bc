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
  host_.note_lost_turn(ns(before), ns(now));
  return host_.is_busy();
}

void Waiter::met_another() noexcept {
  if (++met_ % TurnLock::kStepsMet != 0) return;
  if (gives_way_ && host_.is_busy()) {
    polls_ = std::max(polls_, spins_);  // the other thread rings when it has moved something
  } else {
    sched_yield();
  }
}

bool Waiter::keeps_others_away() noexcept {
  const auto before = std::exchange(looked_at_, Clock::now());
  const bool lost = before != Clock::time_point() && lost_turn(before);
  return host_.shares_processor(asks_) || lost;
}

bool Waiter::pause_slowly() noexcept {
  // On a busy machine each yield costs a scheduling round, while a sleeper is woken soon.
  const bool is_busy = gives_way_ && host_.is_busy();
  const std::uint32_t yields = is_busy                         ? 0
                               : host_.may_spin() && !crowded_ ? kYields
                                                               : kCrowdedYields;
  if (polls_ < spins_ + yields) {
    const auto before = gives_way_ ? Clock::now() : Clock::time_point::max();
    sched_yield();
    if (gives_way_) lost_turn(before);
    if (!host_.may_spin() && asks_ == control::HostControl::Asks::kCaller) host_.tell_processor();
    // The yield may have been long, as others had the processor. Mostly the awaited rank had it,
    // and a look at other things is not needed.
    return polls_ > spins_ + 1 || pauses_ % kYieldsALook == 0;
  }
  // Announce the sleep; the caller polls once more before the next pause sleeps.
  ticket_ = host_.before_sleep();
  armed_ = true;
  return true;
}

bool Waiter::sleep() noexcept {
  host_.sleep(ticket_, deadline_, more_);
  disarm();
  polls_ = spins_;  // a few more yields, then sleep again
  return true;
}

void Waiter::disarm() noexcept {
  if (armed_) {
    host_.after_sleep();
    armed_ = false;
  }
}

}  // namespace hocket::call
