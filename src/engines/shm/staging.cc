#include "engines/shm/staging.h"

#include <chrono>

namespace hocket::engines::shm {

void Stager::copy_as_is_best(void* to, const void* from, std::size_t bytes) noexcept {
  if (until_timed_ > 0) {
    --until_timed_;
    core::copy(to, from, bytes, far_ ? core::Stores::kStreaming : core::Stores::kCached);
    return;
  }
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  core::copy(to, from, bytes, core::Stores::kCached);
  const std::chrono::duration<double, std::nano> took = Clock::now() - begin;
  slow_ = static_cast<double>(bytes) < kFarBytesPerNs * took.count() ? slow_ + 1 : 0;
  if (slow_ == 0) far_ = false;
  if (slow_ >= 2) far_ = true;
  // A first slow one is soon followed by another look.
  until_timed_ = far_ ? kTimedWhenFar : slow_ != 0 ? 0 : kTimedWhenNear;
}

}  // namespace hocket::engines::shm
