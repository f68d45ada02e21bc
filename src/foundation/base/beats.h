// A watch over the clock notes when it had a turn. The time leaves out the gaps between its turns.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

#include "foundation/base/atomic.h"
#include "foundation/base/relax.h"

namespace hocket::base {

// All in ns. One thread beats and ends; any thread reads. Time stands still from `kGap` after a
// beat to the next one:
//
//     steady   ...|...|...|..............|...|...
//                beats    |<-kGap->|     the next beat: what is missing is left out from here on
//                                  time stands still
class Beats {
 public:
  static constexpr std::int64_t kGap = 200'000'000;

  // The watch has a turn at `now`.
  void beat(std::int64_t now) noexcept {
    const std::int64_t until = until_.load(std::memory_order_relaxed);
    if (now > until) {
      // Readers see both or neither: they look at `until_` twice.
      until_.store(kBeingWritten, std::memory_order_relaxed);
      thread_fence(std::memory_order_release);
      left_out_.store(left_out_.load(std::memory_order_relaxed) + (now - until),
                      std::memory_order_relaxed);
    }
    until_.store(now + kGap, std::memory_order_release);
  }
  // Nobody beats from here on: all time counts. Each end has a value of its own, so that a reader
  // who met two of them notices.
  void end() noexcept { until_.store(kUnwatched + ++ends_, std::memory_order_release); }

  // The time, where `steady()` reads the clock.
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
  std::int64_t ends_ = 0;  // of who beats
};

}  // namespace hocket::base
