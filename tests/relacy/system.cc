// Replaces foundation/os/futex.cc, foundation/base/run_clock.cc, and functions that yield the
// processor, by calls of the simulator.
#include "system.h"

#include <sched.h>
#include <time.h>

#include "foundation/base/beats.h"
#include "foundation/os/futex.h"
#include "foundation/os/process/scheduling.h"
#include "hocket/run_clock.h"
#include "simulator.h"

namespace hocket::relacy {
bool has_heavy_fence = true;
}

namespace hocket {

// No heartbeat runs here; beats_test.cc tests those.
RunClock::time_point RunClock::now() noexcept {
  return time_point(std::chrono::steady_clock::now().time_since_epoch());
}
std::int64_t base::coarse_run_time() noexcept { return RunClock::now().time_since_epoch().count(); }

}  // namespace hocket

namespace hocket::os {

// Sleeps have no timeout, so a missed wake-up shows as a deadlock. But without heavy fences a
// wake-up may be missed, and sleeps are short.
bool futex_wait(FutexWord& word, std::uint32_t expected, base::Deadline) noexcept {
  if (relacy::has_heavy_fence) {
    relacy::sleep_on(&word, word.initial(), expected, std::source_location::current());
  } else {
    relacy::yield();
  }
  return true;
}
void futex_wake_all(FutexWord& word) noexcept {
  relacy::wake_all(&word, std::source_location::current());
}
void futex_wait_any(std::span<const FutexWait> waits, base::Deadline deadline) noexcept {
  futex_wait(*waits[0].word, waits[0].expected, deadline);
}
bool heavy_fence() noexcept {
  if (relacy::has_heavy_fence) relacy::heavy_fence(std::source_location::current());
  return relacy::has_heavy_fence;
}
bool register_for_heavy_fence() noexcept { return relacy::has_heavy_fence; }

// The simulator has no processors.
bool leave_processors(std::span<const int>, std::size_t) noexcept { return false; }

}  // namespace hocket::os

// Instead of the C library's.
extern "C" int sched_yield() noexcept {
  hocket::relacy::yield();
  return 0;
}
extern "C" int nanosleep(const timespec*, timespec*) {
  hocket::relacy::yield();
  return 0;
}
