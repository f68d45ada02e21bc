// The loops in which threads wait for conditions.
#pragma once

#include <algorithm>
#include <thread>

#include "foundation/base/deadline.h"
#include "foundation/base/relax.h"
#include "hocket/types.h"

namespace hocket::base {

// The loop in which all threads wait. `is_so(look)` returns whether the wait is over. If `look` is
// true, it should also check for other events, such as a deadline. An exception ends the wait.
// `pace.pause()` spins, yields or sleeps for a moment, and returns the next value of `look`.
template <typename Condition, typename Pace>
void wait_until(Condition is_so, Pace& pace) {
  for (bool look = false; !is_so(look); look = pace.pause()) {
  }
}

// The pace of a wait for an event that wakes no thread: a few checks at once, then a sleep between
// any two checks. A value.
class Naps {
 public:
  // If `nap` is 0, the thread yields its processor instead of sleeping. `eager` is the number of
  // first checks without a pause.
  explicit Naps(Duration nap, int eager = 0) noexcept : Naps(nap, nap, eager) {}
  // Each nap is twice as long as the one before, up to `longest`.
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
  // Tells that something has moved: the next `eager` checks follow at once.
  void moved() noexcept { looks_ = 0; }
  void wake_by(Deadline deadline) noexcept { deadline_ = deadline; }

 private:
  Duration nap_;
  Duration longest_;
  int eager_;
  int looks_ = 0;
  Deadline deadline_ = Deadline::never();
};

// Waits until `is_so()` is true. Returns false if the deadline comes first.
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
