#include "engines/shm/staging.h"

#include <chrono>

namespace hocket::engines::shm {
namespace {

// Bytes a nanosecond of an ordinary copy, between what is seen at one distance and at the next:
// some 40, 10 and 2.
constexpr double kAllCaches = 20;
constexpr double kLastCache = 4;
// Copies from one that is timed to the next: where they are ordinary ones anyway, and where not.
constexpr std::uint32_t kTimedOften = 16;
constexpr std::uint32_t kTimedSeldom = 256;

}  // namespace

// One slow copy may have been interrupted, so it takes two to believe in a greater distance.
void Stager::copy_timed(void* to,
                        const void* from,
                        std::size_t bytes,
                        core::Stores usual) noexcept {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  core::copy(to, from, bytes, core::Stores::kCached);
  const std::chrono::duration<double, std::nano> took = Clock::now() - begin;
  const double rate = static_cast<double>(bytes) / took.count();
  const Shared seen = rate > kAllCaches   ? Shared::kAllCaches
                      : rate > kLastCache ? Shared::kLastCache
                                          : Shared::kMemory;
  const bool is_slower = seen > shared_;
  if (!is_slower || doubts_) shared_ = seen;
  doubts_ = is_slower && !doubts_;
  until_timed_ = doubts_ ? 0 : usual == core::Stores::kCached ? kTimedOften : kTimedSeldom;
}

}  // namespace hocket::engines::shm
