// A point in time after which a wait gives up, by the clock that leaves out what this process could
// not use. A value.
#pragma once

#include <chrono>
#include <string>

#include "hocket/run_clock.h"
#include "hocket/types.h"

namespace hocket::base {

class Deadline {
 public:
  using Clock = RunClock;

  // Never; spelled out, as there is no default.
  static Deadline never() noexcept { return Deadline(Clock::time_point::max()); }
  static Deadline at(Clock::time_point when) noexcept { return Deadline(when); }
  // `after` from now; kForever, and anything past the clock's range, is never.
  static Deadline in(Duration after) noexcept;

  bool is_never() const noexcept { return when_ == Clock::time_point::max(); }
  bool has_passed() const noexcept { return !is_never() && Clock::now() >= when_; }
  // Time left, at least zero; kForever for never.
  Duration left() const noexcept;
  // The time left for poll(2): milliseconds rounded up, -1 for never.
  int poll_timeout_ms() const noexcept;
  Clock::time_point when() const noexcept { return when_; }

  friend bool operator<(Deadline a, Deadline b) noexcept { return a.when_ < b.when_; }

 private:
  explicit Deadline(Clock::time_point when) noexcept : when_(when) {}
  Clock::time_point when_;
};

// "0.5 s", "300 s", for messages; "ever" for kForever.
std::string in_seconds(Duration duration);

}  // namespace hocket::base
