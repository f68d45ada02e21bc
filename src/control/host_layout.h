// Where things lie in a host's segment. Included by control's own files only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "control/host.h"
#include "control/kept_facts.h"
#include "os/futex.h"
#include "os/segment.h"

namespace hocket::control {

inline constexpr std::uint64_t kMagic = 0x74656b636f6862ULL;  // "bhocket"

struct HostHeader {
  base::Atomic<std::uint64_t> magic{0};  // written last
  std::uint32_t ranks = 0;
  std::uint32_t remote = 0;
  std::uint64_t stripe_bytes = 0;
  base::Atomic<std::uint64_t> world{0};  // offset of the world's group
  alignas(kApart) base::Atomic<std::uint32_t> losses{0};
  alignas(kApart) os::FutexWord network_bell{0};
};

inline std::size_t pages(std::size_t size, int count) {
  return os::round_to_pages(size * static_cast<std::size_t>(count));
}
inline std::size_t lines_offset() { return pages(sizeof(HostHeader), 1); }
inline std::size_t robust_offset(const HostShape& shape) {
  return lines_offset() + pages(sizeof(RankLine), shape.ranks + shape.remote);
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

// In front of each block of a stripe. Who still holds it: bit 0 is the network, the others are
// ranks.
struct alignas(kApart) BlockHeader {
  std::uint64_t bytes;  // the header included
  base::Atomic<std::uint64_t> held[31];
};
static_assert(sizeof(BlockHeader) == 256);
// Of the first block of rank `place`: its desk, see live/desk.h.
inline std::uint64_t first_block_offset(const HostShape& shape, int place) {
  return stripes_offset(shape) + static_cast<std::uint64_t>(place) * shape.stripe_bytes +
         sizeof(BlockHeader);
}

}  // namespace hocket::control
