// The lines of all ranks in a host's segment, and one rank's view of them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "foundation/base/atomic.h"
#include "foundation/os/futex.h"

namespace hocket::control {

inline constexpr std::size_t kCacheLine = 64;
// Two cache lines, because processors fetch neighbouring lines in pairs.
inline constexpr std::size_t kApart = 128;

enum class RankState : std::uint32_t {
  kAbsent,  // has not joined yet
  kAlive,
  kLeft,  // ended in good order
  kDied,
  kSilent,  // its host no longer answers
  kCut,     // the connection for its messages has broken, but its host answers
};

// Returns whether a rank may still run, so that the lanes may bring news of it. This includes a
// rank that is cut off.
constexpr bool may_live(RankState state) noexcept {
  return state <= RankState::kAlive || state == RankState::kCut;
}

// The line of one rank. It writes its line itself; the network writes the lines of other hosts'
// ranks. The classes of this folder say which accesses pair.
struct alignas(kApart) RankLine {
  base::Atomic<std::uint32_t> parked{0};  // threads of the rank that sleep, or are about to
  os::FutexWord doorbell{0};              // its threads sleep on this word
  alignas(kApart) base::Atomic<RankState> state{RankState::kAbsent};
  base::Atomic<std::int32_t> pid{0};
  base::Atomic<std::int32_t> world_rank{-1};
  base::Atomic<std::int32_t> end{0};          // how the rank ended; see liveness.cc
  base::Atomic<std::int32_t> thread{0};       // the thread that took the place, as gettid
  base::Atomic<std::uint64_t> start{0};       // os::process_start
  base::Atomic<std::int64_t> death_seen{0};   // ns of the steady clock; 0: not yet
  base::Atomic<std::int32_t> running_on{-1};  // the processor on which it last waited
  base::Atomic<std::uint32_t> may_spin{0};    // ProcessorSharing::may_spin
  base::Atomic<std::int32_t> cut_from{-1};    // in kCut: the rank of this host that found it
  base::Atomic<std::uint32_t> fenced{0};      // heavy fences of other ranks cover it
  base::Atomic<std::int32_t> host{-1};        // the number of its host; -1: one host
  base::Atomic<std::uint64_t> pid_space{0};   // os::process_space
  // For a rank of this host: the last time that its network thread ran. For the first rank of
  // another host: the last time that any rank here heard from that host. In ns of the steady clock;
  // 0: never.
  base::Atomic<std::int64_t> seen_at{0};
  base::Atomic<std::int32_t> awaits{-1};      // the place of the rank for which it has waited long
  base::Atomic<std::int32_t> spoken_for{-1};  // the place of the rank that warns of waits for it
  base::Atomic<std::uint32_t> task{0};        // 2 n: in task n; 2 n + 1: has ended task n; 0: none
  // For single copy; see PeerMemory::agree_on_single_copy. `access` is 1 + base::SingleCopy, as the
  // rank wants and can do it, plus kMayWrite if it can also write to others. `proof` is a random
  // number. `proof_at` is the address of PeerMemory::Proof in the rank's memory, which has the same
  // number.
  static constexpr std::uint32_t kMayWrite = 4;
  base::Atomic<std::uint32_t> access{0};
  base::Atomic<std::uint64_t> proof{0};
  base::Atomic<std::uint64_t> proof_at{0};
};
static_assert(sizeof(RankLine) == 2 * kApart);

inline std::int64_t now_ns() noexcept {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

// The shape of a segment. A value.
struct HostShape {
  int ranks = 1;                 // number of ranks on this host
  int remote = 0;                // number of ranks on other hosts
  std::size_t stripe_bytes = 0;  // a multiple of the page size
};

// The lines of all places, as host rank `self` sees them. A value, and the base class of each part
// of HostControl. The segment outlives it. Any thread.
class HostView {
 public:
  static constexpr int kMostRanks =
      31 * 64 - 1;  // on one host: a block has so many bits for holders
  HostView(RankLine* lines, int self, int ranks, int places) noexcept
      : lines_(lines), self_(self), ranks_(ranks), places_(places) {}

  int self() const noexcept { return self_; }
  int ranks() const noexcept { return ranks_; }
  // Returns the number of places, for ranks of this host and of other hosts.
  int places() const noexcept { return places_; }
  bool is_here(int place) const noexcept { return place < ranks_; }
  int world_rank(int place) const noexcept {
    return lines_[place].world_rank.load(std::memory_order_relaxed);
  }

 protected:
  RankLine* lines_;
  int self_;
  int ranks_;
  int places_;
};

}  // namespace hocket::control
