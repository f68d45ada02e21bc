// Plans a call: the kernels and copies that carry it out. These are pure functions, which also run
// on a host without a GPU. Where ranks must agree, they give the same result on all ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/call.h"
#include "engines/peer/kernels/params.h"

namespace hocket::engines::peer {

// The kinds that this engine has code for.
inline constexpr engine::KindSet kCarries = engine::kCommonKinds;

// The limits between the protocols, equal on all ranks of a group. A value. Sizes are bytes that
// one rank sends to another, unless stated otherwise.
struct PeerTuning {
  std::size_t one_hop = 256 * 1024;  // all_reduce: bytes of the array times size - 1
  std::size_t two_hops = 16 << 20;   // all_reduce by packets: bytes of the array
  std::size_t scattered = 4 << 20;   // reduce_scatter by packets
  std::size_t to_one = 1 << 20;      // reduce by packets
  std::size_t packets = 4 << 20;     // movement by packets
  std::size_t messages = 2 << 20;    // messages by packets
  std::size_t small = kSmallBytes;   // one vector in each thread, the upper limit
  std::size_t relays = 512 * 1024;   // broadcast, reduce: from this size on all ranks help
  std::size_t direct = 2 << 20;      // symmetric movement: from this size on directly into the
                                     // target
  std::size_t engines = 64 << 20;    // symmetric broadcast: from this size on by the copy engines
  std::size_t meeting = 1 << 20;     // calls among all: from this array's size on the ranks meet
                                     // first
  bool lines = true;                 // packets form lines; if false, data that is not small uses
                                     // chunks
  std::uint32_t groups = 3;          // groups of packets in one channel before another channel is
                                     // used
  std::uint32_t least_chunk = 8192;  // minimum and maximum bytes of a chunk
  std::uint32_t most_chunk = 1 << 20;
  std::uint32_t turns = 1;                // chunks of a channel before chunks grow
  std::uint32_t channels = kMaxChannels;  // maximum, and the maximum with three blocks in each
                                          // channel
  std::uint32_t wide_channels = kMaxChannels / 2;
  std::uint32_t blocks = 2 * kMaxChannels;  // maximum blocks of a launch that may wait for peers
};
// Returns the measured defaults for groups of `size`.
PeerTuning default_tuning(int size) noexcept;
// Returns the tuning with at most `blocks` blocks in a launch.
PeerTuning with_room(PeerTuning tuning, std::uint32_t blocks) noexcept;

// One rank's view of its group's memory, prepared for each lane. A value.
struct Member {
  int rank = 0;
  int size = 1;
  LaneParams lanes[kLanes];
};
// `staging` has the areas of all ranks, by rank, as mapped here.
Member make_member(int rank, int size, std::byte* const* staging, HostWords* host) noexcept;

// The `out` arrays of the ranks' calls, by rank, as mapped here. Empty: unknown.
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
// Returns whether the protocol's kernel takes SmallParams. kReduceEven takes EvenParams, and all
// others take Params.
constexpr bool takes_small(Protocol protocol) noexcept {
  return protocol == Protocol::kBarrier || protocol == Protocol::kExchangeSmall ||
         protocol == Protocol::kReduceSmall;
}

// Returns the largest number of threads in a block.
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

// Selects the kernel of a protocol that reduces: specialized ones for some sums, and one for
// everything else.
enum class Folding : std::uint8_t { kAny, kSumFloat32, kSumFloat16, kSumBFloat16 };
inline constexpr int kFoldingCount = 4;
Folding folding_of(FoldCode code) noexcept;
// Kernels that reduce are compiled for at most 2, 4 or 8 ranks.
constexpr int capacity_index(int size) noexcept { return size <= 2 ? 0 : size <= 4 ? 1 : 2; }

// One kernel, or one copy if `copy_bytes` is not 0. A value.
struct Step {
  Protocol protocol = Protocol::kBarrier;
  int blocks = 1;
  int threads = 32;
  SmallParams small;  // if takes_small(protocol)
  EvenParams even;    // for kReduceEven
  Params params;      // for all others
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

// Returns the steps of `call` on this rank, in their order on one stream. Empty if there is nothing
// to do. `outs` is for symmetric calls.
std::vector<Step> plan(const engine::Call& call,
                       const Member& member,
                       const PeerTuning& tuning,
                       PeerOuts outs = {});

// A message to or from another rank, or both.
struct PeerMessage {
  int peer = 0;
  const void* send = nullptr;
  std::size_t send_bytes = 0;
  void* receive = nullptr;
  std::size_t receive_bytes = 0;
};
// Plans the messages of one launch, at most one in each direction with a peer. The peer's launch
// may contain other messages too. Messages between two ranks are matched in the order of their
// launches.
std::vector<Step> plan_messages(std::span<const PeerMessage> messages,
                                const Member& member,
                                const PeerTuning& tuning);

}  // namespace hocket::engines::peer
