// Records when the thread `hocket-clock` ran. Gaps between its runs do not count as time.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

#include "foundation/base/atomic.h"
#include "foundation/base/relax.h"

namespace hocket::base {

// A clock that leaves out the time in which the process was stopped. All times are in ns. One
// thread calls `beat` and `end`; any thread reads. The time stands still from `kGap` after a beat
// until the next beat:
//
//     steady   ...|...|...|..............|...|...
//                beats    |<-kGap->|     the next beat: the gap is left out from here on
//                                  time stands still
class Beats {
 public:
  static constexpr std::int64_t kGap = 200'000'000;

  // Records a beat at `now`.
  void beat(std::int64_t now) noexcept {
    const std::int64_t until = until_.load(std::memory_order_relaxed);
    if (now > until) {
      // `until_` works as a sequence lock: a reader reads it before and after `left_out_`, and
      // retries if it has changed.
      until_.store(kBeingWritten, std::memory_order_relaxed);
      thread_fence(std::memory_order_release);
      left_out_.store(left_out_.load(std::memory_order_relaxed) + (now - until),
                      std::memory_order_relaxed);
    }
    until_.store(now + kGap, std::memory_order_release);
  }
  // Ends the watch: from here on all time counts. Each end stores a different value, so that a
  // reader notices beats and another end between its two reads of `until_`.
  void end() noexcept { until_.store(kUnwatched + ++ends_, std::memory_order_release); }

  // Returns the time. `steady()` reads the clock.
  template <typename Steady>
  std::int64_t time(Steady steady) const noexcept {
    for (;; relax()) {
      const std::int64_t until = until_.load(std::memory_order_acquire);
      const std::int64_t left_out = left_out_.load(std::memory_order_relaxed);
      const std::int64_t now = steady();
      thread_fence(std::memory_order_acquire);
      if (until == kBeingWritten || until_.load(std::memory_order_relaxed) != until) continue;
      return std::min(now, until) - left_out;
    }
  }

 private:
  static constexpr std::int64_t kBeingWritten = -1;
  static constexpr std::int64_t kUnwatched = std::numeric_limits<std::int64_t>::max() / 2;

  Atomic<std::int64_t> until_{kUnwatched};
  Atomic<std::int64_t> left_out_{0};
  std::int64_t ends_ = 0;  // written by the thread that beats
};

// Returns the time of RunClock, at most kCoarse ns late. It is much cheaper than RunClock::now.
inline constexpr std::int64_t kCoarse = 10'000'000;
std::int64_t coarse_run_time() noexcept;

}  // namespace hocket::base
