// A point in time at which a wait gives up. It is measured on RunClock, which leaves out the time
// in which this process could not run. A value.
#pragma once

#include <chrono>
#include <string>

#include "hocket/run_clock.h"
#include "hocket/types.h"

namespace hocket::base {

class Deadline {
 public:
  using Clock = RunClock;

  // The infinite deadline. A Deadline has no default, so code that wants none must say so.
  static Deadline never() noexcept { return Deadline(Clock::time_point::max()); }
  static Deadline at(Clock::time_point when) noexcept { return Deadline(when); }
  // Returns the deadline `after` from now. kForever, and times beyond the clock's range, mean
  // never.
  static Deadline in(Duration after) noexcept;

  // Like `in`, but up to 10 ms later. It reads a faster clock, for calls that begin very often.
  static Deadline in_about(Duration after) noexcept;

  bool is_never() const noexcept { return when_ == Clock::time_point::max(); }
  bool has_passed() const noexcept { return !is_never() && Clock::now() >= when_; }
  // Returns the time left, at least zero. kForever for never.
  Duration left() const noexcept;
  // Returns the time left as a timeout of poll(2): milliseconds, rounded up, or -1 for never.
  int poll_timeout_ms() const noexcept;
  Clock::time_point when() const noexcept { return when_; }

  friend bool operator<(Deadline a, Deadline b) noexcept { return a.when_ < b.when_; }

 private:
  static Deadline after_time(Clock::time_point time, Duration after) noexcept;
  explicit Deadline(Clock::time_point when) noexcept : when_(when) {}
  Clock::time_point when_;
};

// Formats a duration for messages: "0.5 s", "300 s"; "ever" for kForever.
std::string in_seconds(Duration duration);

}  // namespace hocket::base
