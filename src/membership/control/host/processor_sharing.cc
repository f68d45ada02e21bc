#include "membership/control/host/processor_sharing.h"

#include <sched.h>

#include <new>
#include <vector>

#include "foundation/os/process/scheduling.h"

namespace hocket::control {

bool ProcessorSharing::shares_processor(Asks who) noexcept {
  const int here = sched_getcpu();
  if (here < 0) return false;
  const bool calls = who == Asks::kCaller;
  auto& own = lines_[self_].running_on;
  // Stores only a changed value, so that the cache line stays shared.
  if (calls && own.load(std::memory_order_relaxed) != here) {
    own.store(here, std::memory_order_relaxed);
  }
  bool shares = false;
  for (int i = 0; i < ranks_; ++i) {
    auto& there = lines_[i].running_on;
    if ((calls && i == self_) || there.load(std::memory_order_relaxed) != here) continue;
    shares = true;
    // Clear the other rank's announcement. If that rank is still here, it announces its processor
    // again. If it has moved away and never waits, no other rank would correct the announcement.
    if (calls) there.store(-1, std::memory_order_relaxed);
  }
  if (!shares || !calls || !may_spin_ || !move_away(here)) return shares;
  own.store(sched_getcpu(), std::memory_order_relaxed);
  return false;
}

// Moves this thread to another processor, at most every 50 ms. This is necessary because the kernel
// leaves two ranks that spin on one processor together, even if another processor is idle.
bool ProcessorSharing::move_away(int here) noexcept {
  const std::int64_t now = now_ns();
  if (now < moves_again_at_.load(std::memory_order_relaxed)) return false;
  moves_again_at_.store(now + kMovePause.count(), std::memory_order_relaxed);
  try {
    std::vector<int> taken{here};
    for (int i = 0; i < ranks_; ++i) {
      const int there = lines_[i].running_on.load(std::memory_order_relaxed);
      if (i != self_ && there >= 0) taken.push_back(there);
    }
    return os::leave_processors(taken, static_cast<std::size_t>(self_));
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace hocket::control
