// The layout of a host's segment, which host.h shows. Only files of this folder and of its parent
// include it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "foundation/base/atomic.h"
#include "foundation/base/short_text.h"
#include "foundation/os/futex.h"
#include "foundation/os/segment.h"
#include "membership/control/host/end_reasons.h"
#include "membership/control/host/listed_groups.h"
#include "membership/control/host/view.h"
#include "membership/control/kept_facts.h"

namespace hocket::control {

inline constexpr std::uint64_t kMagic = 0x74656b636f6863ULL;  // "chocket"

struct HostHeader {
  base::Atomic<std::uint64_t> magic{0};  // written last
  std::uint32_t ranks = 0;
  std::uint32_t remote = 0;
  std::uint64_t stripe_bytes = 0;
  base::Atomic<std::uint64_t> world{0};  // see HostControl::publish_world
  alignas(kApart) base::Atomic<std::uint32_t> losses{0};
  alignas(kApart) os::FutexWord network_bell{0};
};

// The reason why a rank ends. Its rank writes it. For a rank of another host, a process of this
// host claims and writes it once. It is a sequence lock: `version` is odd while the rest changes.
struct alignas(kApart) SharedEndReason {
  base::Atomic<std::uint32_t> version{0};
  base::Atomic<Ending> ending{Ending::kInOrder};
  base::Torn<base::ShortSentence<EndReason::kTextBytes>> text;

  void write(Ending how, std::string_view what) noexcept {
    std::uint32_t before = version.load(std::memory_order_relaxed);
    if (before % 2 != 0 ||
        !version.compare_exchange_strong(before, before + 1, std::memory_order_relaxed)) {
      return;
    }
    base::thread_fence(std::memory_order_release);
    ending.store(how, std::memory_order_relaxed);
    text = what;
    version.store(before + 2, std::memory_order_release);
  }
  // Returns the reason. Absent: there is none, or it is being written.
  std::optional<EndReason> read() const {
    const std::uint32_t before = version.load(std::memory_order_acquire);
    if (before % 2 != 0) return std::nullopt;
    const Ending how = ending.load(std::memory_order_relaxed);
    EndReason reason{.of_a_part = how == Ending::kInOrder,
                     .follows_loss = how == Ending::kAfterALoss,
                     .text = std::string(text.view())};
    base::thread_fence(std::memory_order_acquire);
    if (version.load(std::memory_order_relaxed) != before) return std::nullopt;
    if (reason.of_a_part && reason.text.empty()) return std::nullopt;
    return reason;
  }
};

inline std::size_t pages(std::size_t size, int count) {
  return os::round_to_pages(size * static_cast<std::size_t>(count));
}
inline std::size_t lines_offset() { return pages(sizeof(HostHeader), 1); }
inline std::size_t reasons_offset(const HostShape& shape) {
  return lines_offset() + pages(sizeof(RankLine), shape.ranks + shape.remote);
}
inline std::size_t robust_offset(const HostShape& shape) {
  return reasons_offset(shape) + pages(sizeof(SharedEndReason), shape.ranks + shape.remote);
}
inline std::size_t groups_offset(const HostShape& shape) {
  return robust_offset(shape) + pages(sizeof(os::RobustWord), shape.ranks * shape.ranks);
}
inline std::size_t kept_facts_offset(const HostShape& shape) {
  return groups_offset(shape) + pages(sizeof(GroupEntry), kGroups);
}
inline std::size_t stripes_offset(const HostShape& shape) {
  if (shape.remote == 0) return groups_offset(shape);
  return kept_facts_offset(shape) + 2 * pages(sizeof(KeptFacts), 1) + pages(sizeof(GoneGroups), 1);
}
inline std::uint64_t stripe_offset(const HostShape& shape, int place) {
  return stripes_offset(shape) + static_cast<std::uint64_t>(place) * shape.stripe_bytes;
}

// The header in front of each block of a stripe. `held` has a bit for each possible holder: bit 0
// for the network, and bit r + 1 for host rank r.
struct alignas(kApart) BlockHeader {
  std::uint64_t bytes;  // size of the block, with this header
  base::Atomic<std::uint64_t> held[31];
};
static_assert(sizeof(BlockHeader) == 256);
// Returns the offset of the first block of the rank at `place`. It contains the rank's board; see
// monitoring/live/status_board.h.
inline std::uint64_t first_block_offset(const HostShape& shape, int place) {
  return stripe_offset(shape, place) + sizeof(BlockHeader);
}

}  // namespace hocket::control
