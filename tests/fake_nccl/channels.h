// Byte channels between ranks of the fake NCCL: a ring for each pair and direction, in memory that
// all map.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "engines/nccl/abi.h"

namespace fake_nccl {

inline constexpr int kMaxRanks = 8;
inline constexpr std::size_t kRing = std::size_t{64} << 10;

struct Ring {
  alignas(64) std::atomic<std::uint64_t> written{0};
  alignas(64) std::atomic<std::uint64_t> read{0};
  alignas(64) std::byte bytes[kRing];

  // As much as fits, or has come; how many bytes that was.
  std::size_t put(const std::byte* from, std::size_t most);
  std::size_t take(std::byte* to, std::size_t most);
};

struct Meeting {
  std::atomic<int> attached{0};
  Ring rings[kMaxRanks][kMaxRanks];  // from, to
};

// Creates the file of a world. It has no name, and is gone with its last process.
hocket::engines::nccl::NcclUniqueId make_meeting();
// Null: there is no such.
Meeting* open_meeting(const hocket::engines::nccl::NcclUniqueId& id);

}  // namespace fake_nccl
