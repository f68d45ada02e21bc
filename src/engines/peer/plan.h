// From a call to the kernels and copies that carry it out. Pure functions: the same on a host
// without a GPU, and where it matters the same on all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/call.h"
#include "engines/peer/kernels/params.h"

namespace hocket::engines::peer {

// Kinds that it has code for.
inline constexpr engine::KindSet kCarries = engine::kCommonKinds;

// Where one protocol takes over from another, equal on all ranks of a group. A value. Sizes are
// bytes that one rank sends another, unless said otherwise.
struct PeerTuning {
  std::size_t one_hop = 256 * 1024;  // all_reduce: bytes of the array times size - 1
  std::size_t two_hops = 16 << 20;   // all_reduce by packets: bytes of the array
  std::size_t scattered = 4 << 20;   // reduce_scatter: what goes by packets
  std::size_t to_one = 1 << 20;      // reduce: what goes by packets
  std::size_t packets = 4 << 20;     // movement: what goes by packets
  std::size_t messages = 2 << 20;    // the same for messages
  std::size_t small = kSmallBytes;   // what goes a vector a thread; at most this
  std::size_t relays = 512 * 1024;   // broadcast, reduce: from here on all ranks help
  std::size_t direct = 2 << 20;      // symmetric movement: from here on straight into place
  std::size_t engines = 64 << 20;    // symmetric broadcast: from here on by the copy engines
  bool lines = true;                 // packets of lines; without, what is not small goes by chunks
  std::uint32_t groups = 3;          // groups of packets to a channel before there is another one
  std::uint32_t least_chunk = 8192;  // bytes of a chunk, at least and at most
  std::uint32_t most_chunk = 1 << 20;
  std::uint32_t turns = 1;                // chunks of a channel before chunks grow
  std::uint32_t channels = kMaxChannels;  // the most, and of what has three blocks a channel
  std::uint32_t wide_channels = kMaxChannels / 2;
  std::uint32_t blocks = 2 * kMaxChannels;  // of a launch, the most that may wait for peers
};
// The defaults, as measured, for groups of `size`.
PeerTuning default_tuning(int size) noexcept;
// The same where there is room for so many blocks of a launch.
PeerTuning with_room(PeerTuning tuning, std::uint32_t blocks) noexcept;

// One rank's view of its group's memory, ready for each lane. A value.
struct Member {
  int rank = 0;
  int size = 1;
  LaneParams lanes[kLanes];
};
// `staging`: the areas of all ranks, by rank, as mapped here.
Member make_member(int rank, int size, std::byte* const* staging, HostWords* host) noexcept;

// Where the ranks' `out` of a call lie, as mapped here, by rank; empty: not known.
using PeerOuts = std::span<std::byte* const>;

enum class Protocol : std::uint8_t {
  kBarrier,
  kExchangeSmall,
  kExchangeSmallParts,
  kExchangePackets,
  kExchangeChunks,
  kExchangeDirect,
  kReduceSmall,
  kReducePackets,
  kAllReducePackets,
  kReduceEven,
  kReduceChunks,
};
inline constexpr int kProtocolCount = 11;
constexpr bool folds(Protocol protocol) noexcept { return protocol >= Protocol::kReduceSmall; }
// Whether its kernel takes SmallParams; all others but kReduceEven take Params.
constexpr bool takes_small(Protocol protocol) noexcept {
  return protocol == Protocol::kBarrier || protocol == Protocol::kExchangeSmall ||
         protocol == Protocol::kReduceSmall;
}

// The most of a block.
constexpr int most_threads(Protocol protocol, int size) noexcept {
  switch (protocol) {
    case Protocol::kBarrier:
      return static_cast<int>(kLanesOfGroup);
    case Protocol::kExchangeSmall:
    case Protocol::kExchangeSmallParts:
    case Protocol::kReduceSmall:
      return static_cast<int>(kSmallThreads);
    case Protocol::kExchangePackets:
    case Protocol::kReducePackets:
    case Protocol::kAllReducePackets:
    case Protocol::kReduceEven:
      return packet_block(size);
    case Protocol::kExchangeChunks:
    case Protocol::kExchangeDirect:
    case Protocol::kReduceChunks:
      break;
  }
  return kChunkBlock;
}

// Which of the kernels of a protocol that folds: those of some sums, and one for all the rest.
enum class Folding : std::uint8_t { kAny, kSumFloat32, kSumFloat16, kSumBFloat16 };
inline constexpr int kFoldingCount = 4;
Folding folding_of(FoldCode code) noexcept;
// Kernels that fold come for so many ranks at most: 2, 4 and 8.
constexpr int capacity_index(int size) noexcept { return size <= 2 ? 0 : size <= 4 ? 1 : 2; }

// One kernel, or one copy where `copy_bytes` is not 0. A value.
struct Step {
  Protocol protocol = Protocol::kBarrier;
  int blocks = 1;
  int threads = 32;
  SmallParams small;  // where takes_small(protocol)
  EvenParams even;    // of kReduceEven
  Params params;      // of all others
  std::byte* copy_to = nullptr;
  const std::byte* copy_from = nullptr;
  std::size_t copy_bytes = 0;

  const LaneParams& lane() const noexcept {
    if (protocol == Protocol::kReduceEven) return even;
    return takes_small(protocol) ? static_cast<const LaneParams&>(small) : params;
  }
  LaneParams& lane() noexcept { return const_cast<LaneParams&>(std::as_const(*this).lane()); }
  FoldCode fold() const noexcept {
    if (protocol == Protocol::kReduceEven) return even.fold;
    return takes_small(protocol) ? small.fold : params.fold;
  }
};

// The steps of `call` on this rank, in order on one stream; none where there is nothing to do.
// `outs`: for symmetric calls.
std::vector<Step> plan(const engine::Call& call,
                       const Member& member,
                       const PeerTuning& tuning,
                       PeerOuts outs = {});

// A message to or from another rank; both where they are exchanged.
struct PeerMessage {
  int peer = 0;
  const void* send = nullptr;
  std::size_t send_bytes = 0;
  void* receive = nullptr;
  std::size_t receive_bytes = 0;
};
// Messages of one launch, at most one each way with a peer; the peer's launch may hold others too.
// Messages between two ranks meet in the order of their launches.
std::vector<Step> plan_messages(std::span<const PeerMessage> messages,
                                const Member& member,
                                const PeerTuning& tuning);

}  // namespace hocket::engines::peer
