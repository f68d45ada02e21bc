#include "engines/shm/staging.h"

#include <chrono>

#include "membership/control/host/view.h"

namespace hocket::engines::shm {
namespace {

// Limits of the speed of an ordinary copy, in bytes per nanosecond. Typical speeds are 40 if the
// cores share all caches, 10 if they share the last cache, and 2 if they share none.
constexpr double kAllCaches = 20;
constexpr double kLastCache = 4;
// Limits of the time of an access to a line that its reader has claimed, in nanoseconds. The access
// takes about 30 if the cores share a cache, and 90 or more otherwise. An access shorter than kAway
// finds the line in this core's cache, so it says nothing about the distance.
constexpr double kAway = 12;
constexpr double kNear = 60;
// Bytes between two timed copies. A timed copy uses ordinary stores, so copies are timed seldom
// while stores past the caches are in use.
constexpr std::size_t kTimedOften = std::size_t{1} << 20;
constexpr std::size_t kTimedSeldom = std::size_t{32} << 20;

double nanoseconds(const auto& of) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  of();
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

// Returns the mean access time of four lines, in an order that no prefetcher predicts.
double line_nanoseconds(const std::byte* at, std::size_t bytes) {
  const std::size_t apart = bytes / 4 / control::kCacheLine * control::kCacheLine;
  const volatile std::size_t none = 0;
  const std::size_t mask = none;  // each load waits for the previous one
  volatile std::size_t last = 0;
  const double all = nanoseconds([&] {
    std::size_t value = 0;
    for (const std::size_t i : {0, 2, 1, 3}) {
      value = std::to_integer<std::size_t>(at[i * apart + (value & mask)]);
    }
    last = value;
  });
  return all / 4;
}

}  // namespace

// Times a copy and updates `shared_`. The assumed distance grows only after two slow copies,
// because a single slow copy may have been interrupted.
void Stager::copy_timed(void* to, const void* from, std::size_t bytes) noexcept {
  Shared seen = Shared::kMemory;
  if (claims_) {
    const double line = line_nanoseconds(static_cast<std::byte*>(to), bytes);
    seen = line < kAway ? shared_ : line < kNear ? Shared::kAllCaches : Shared::kMemory;
  }
  const double took = nanoseconds([&] { core::copy(to, from, bytes, core::Stores::kCached); });
  if (!claims_) {
    const double rate = static_cast<double>(bytes) / took;
    seen = rate > kAllCaches   ? Shared::kAllCaches
           : rate > kLastCache ? Shared::kLastCache
                               : Shared::kMemory;
  }
  const bool is_slower = seen > shared_;
  if (!is_slower || doubts_) shared_ = seen;
  doubts_ = is_slower && !doubts_;
  const bool often = best(false) == core::Stores::kCached;
  until_timed_ = doubts_ ? 0 : often ? kTimedOften : kTimedSeldom;
}

}  // namespace hocket::engines::shm
