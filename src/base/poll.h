// Waits for what nobody wakes a thread for: it looks, sleeps a while, and looks again.
#pragma once

#include <algorithm>
#include <thread>

#include "base/deadline.h"
#include "hocket/types.h"

namespace hocket::base {

// Whether `is_so()` came true before the deadline. `pause`: between two looks, but for the first
// `eager` of them, which follow each other at once. What `is_so` throws ends the wait: checks for
// abort and progress are its own.
template <typename Condition>
bool poll_until(Condition is_so, Deadline deadline, Duration pause, int eager = 0) {
  for (int looks = 0; !is_so(); ++looks) {
    if (deadline.has_passed()) return false;
    if (looks >= eager) std::this_thread::sleep_for(std::min(pause, deadline.left()));
  }
  return true;
}

}  // namespace hocket::base
