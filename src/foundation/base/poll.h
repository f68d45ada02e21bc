// The loops in which threads wait for conditions.
#pragma once

#include <algorithm>
#include <thread>

#include "foundation/base/deadline.h"
#include "foundation/base/relax.h"
#include "hocket/types.h"

namespace hocket::base {

// The loop in which a thread waits. `is_so(look)` returns whether the wait is over. `look` says
// that it is time to check for other events as well. An exception ends the wait. `pace.pause()`
// yields the processor for a while, and returns whether it is time to look.
template <typename Condition, typename Pace>
void wait_until(Condition is_so, Pace& pace) {
  for (bool look = false; !is_so(look); look = pace.pause()) {
  }
}

// The pace of a wait for an event that wakes nobody: some checks at once, then sleeps between
// checks. A value.
class Naps {
 public:
  // Zero for `nap` only yields the processor. `eager` is the number of checks without a pause.
  explicit Naps(Duration nap, int eager = 0) noexcept : Naps(nap, nap, eager) {}
  // The naps get longer, up to `longest`.
  Naps(Duration nap, Duration longest, int eager = 0) noexcept
      : nap_(nap), longest_(longest), eager_(eager) {}

  bool pause() {
    if (looks_ < eager_) {
      ++looks_;
      relax();
    } else if (nap_ == Duration::zero()) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::min(nap_, deadline_.left()));
      nap_ = std::min(2 * nap_, longest_);
    }
    return true;
  }
  // Something moved: the next checks are made at once.
  void moved() noexcept { looks_ = 0; }
  void wake_by(Deadline deadline) noexcept { deadline_ = deadline; }

 private:
  Duration nap_;
  Duration longest_;
  int eager_;
  int looks_ = 0;
  Deadline deadline_ = Deadline::never();
};

// Returns whether `is_so()` became true before the deadline.
template <typename Condition>
bool poll_until(Condition is_so, Deadline deadline, Naps naps) {
  naps.wake_by(deadline);
  bool came_true = false;
  const auto is_over = [&](bool) {
    came_true = is_so();
    return came_true || deadline.has_passed();
  };
  wait_until(is_over, naps);
  return came_true;
}
template <typename Condition>
bool poll_until(Condition is_so, Deadline deadline, Duration nap, int eager = 0) {
  return poll_until(is_so, deadline, Naps(nap, eager));
}

}  // namespace hocket::base
