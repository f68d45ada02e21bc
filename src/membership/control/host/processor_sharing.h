// Finds out which ranks of a host share a processor, and whether a spinning rank keeps others from
// running.
#pragma once

#include <sched.h>

#include <chrono>
#include <cstdint>

#include "foundation/base/atomic.h"
#include "membership/control/host/view.h"

namespace hocket::control {

// The processors of a host's ranks: a rank announces its own and sees those of the others. A view
// of the segment, with this rank's private record of the times at which it lost its processor.
// Times are in ns of the steady clock. Any thread, unless noted otherwise.
class ProcessorSharing : public HostView {
 public:
  explicit ProcessorSharing(const HostView& view) noexcept : HostView(view) {}
  ProcessorSharing(const ProcessorSharing&) = delete;
  ProcessorSharing& operator=(const ProcessorSharing&) = delete;

  // Returns whether this rank may spin while it waits. os::paces_of decides this. It must be set
  // before other threads use this object, and before the rank arrives.
  bool may_spin() const noexcept { return may_spin_; }
  void set_may_spin(bool may) noexcept {
    may_spin_ = may;
    lines_[self_].may_spin.store(may ? 1 : 0, std::memory_order_relaxed);
  }
  // Returns whether another rank may spin. Once that rank has arrived, all ranks get the same
  // answer.
  bool may_spin(int rank) const noexcept {
    return lines_[rank].may_spin.load(std::memory_order_relaxed) != 0;
  }
  // Returns whether other processes compete for this rank's processor. This is so if two losses of
  // the processor took at least half of the time since the first one began. The rank then sleeps
  // early instead of spinning. A sleeper gets the processor soon after its wake-up, but a rank that
  // has used up its share waits for a whole scheduling round. A single loss does not count, because
  // a hypervisor also takes a processor away for moments.
  bool is_busy() const noexcept {
    const std::int64_t until = busy_until_.load(std::memory_order_relaxed);
    return until != 0 && now_ns() < until;
  }
  // Notes that this rank lost its processor from time `from` to time `to`, while it spun or
  // yielded.
  void note_lost_turn(std::int64_t from, std::int64_t to) noexcept {
    const std::int64_t last_from = lost_from_.exchange(from, std::memory_order_relaxed);
    const std::int64_t last_to = lost_to_.exchange(to, std::memory_order_relaxed);
    const std::int64_t lost = (last_to - last_from) + (to - from);
    if (last_to == 0 || 2 * lost < to - last_from) return;
    busy_until_.store(to + kBusyFor.count(), std::memory_order_relaxed);
  }
  // Returns whether a waiting rank of this host was last seen on this thread's processor. If so,
  // spinning might keep the awaited rank from running.
  //
  // kCaller: the thread is in a call. It announces its processor. Each announcement of another rank
  // counts once. If every rank can have its own processor, the thread moves to one where no rank
  // was seen. kBackground: any other thread. It announces nothing, and counts its own rank's caller
  // too.
  enum class Asks : std::uint8_t { kCaller, kBackground };
  bool shares_processor(Asks who) noexcept;
  // For hosts with more ranks than processors. A caller that continues after a yield announces its
  // processor. `was_beside` then tells which ranks were last seen on it. A caller that waits for
  // such a rank must not spin, because it would keep the rank from running.
  void tell_processor() noexcept {
    const int here = sched_getcpu();
    auto& own = lines_[self_].running_on;
    if (own.load(std::memory_order_relaxed) != here) own.store(here, std::memory_order_relaxed);
  }
  bool was_beside(int rank) const noexcept {
    return lines_[rank].running_on.load(std::memory_order_relaxed) ==
           lines_[self_].running_on.load(std::memory_order_relaxed);
  }

 private:
  static constexpr std::chrono::nanoseconds kBusyFor = std::chrono::seconds(1);
  static constexpr std::chrono::nanoseconds kMovePause = std::chrono::milliseconds(50);
  bool move_away(int here) noexcept;

  bool may_spin_ = false;
  base::Atomic<std::int64_t> moves_again_at_{0};  // for all threads that wait in calls
  base::Atomic<std::int64_t> busy_until_{0};
  base::Atomic<std::int64_t> lost_from_{0};  // the last loss of the processor
  base::Atomic<std::int64_t> lost_to_{0};
};

}  // namespace hocket::control
