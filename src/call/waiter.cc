#include "call/waiter.h"

#include <sched.h>

namespace hocket::call {

bool Waiter::pause_slowly() noexcept {
  const std::uint32_t yields = host_.may_spin() && !crowded_ ? kYields : kCrowdedYields;
  if (polls_ < spins_ + yields) {
    sched_yield();
    if (!host_.may_spin() && asks_ == control::HostControl::Asks::kCaller) host_.tell_processor();
    // It may have been long, as others had the processor; but mostly who was waited for had it, and
    // there is nothing else to look at.
    return polls_ > spins_ + 1;
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
