// Plans a call: selects the kernels and copies that carry it out. These are pure functions, which
// also run on a host without a GPU. Everything in which ranks must agree is equal on all ranks.
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

// The limits between the protocols, equal on all ranks of a group. Sizes are the bytes that one
// rank sends to another, unless the comment says otherwise. A value.
struct PeerTuning {
  std::size_t one_hop = 256 * 1024;  // all_reduce: bytes of the array times size - 1
  std::size_t two_hops = 16 << 20;   // all_reduce by packets: bytes of the array
  std::size_t scattered = 4 << 20;   // reduce_scatter by packets
  std::size_t to_one = 1 << 20;      // reduce by packets
  std::size_t packets = 4 << 20;     // movement by packets
  std::size_t messages = 2 << 20;    // messages by packets
  std::size_t small = kSmallBytes;   // upper limit of small calls, with one vector in each thread
  std::size_t relays = 512 * 1024;   // broadcast, reduce: above this size all ranks relay a part
  std::size_t direct = 2 << 20;      // symmetric movement: above this size, the sender writes
                                     // directly into the receiver's array
  std::size_t engines = 64 << 20;    // symmetric broadcast: from this size on by the copy engines
  std::size_t meeting = 1 << 20;     // calls without a root: from this array size on, the ranks
                                     // meet in a small kernel first
  bool lines = true;                 // packets form lines; if false, calls that are not small use
                                     // chunks
  std::uint32_t groups = 3;          // groups of packets in a channel before one more channel is
                                     // used
  std::uint32_t least_chunk = 8192;  // minimum and maximum bytes of a chunk
  std::uint32_t most_chunk = 1 << 20;
  std::uint32_t turns = 1;  // chunks in each channel before chunks become longer
  // The maximum number of channels, with up to two blocks in each channel and with three.
  std::uint32_t channels = kMaxChannels;
  std::uint32_t wide_channels = kMaxChannels / 2;
  // The maximum number of blocks in a launch whose blocks wait for peers.
  std::uint32_t blocks = 2 * kMaxChannels;
};
// Returns the measured defaults for groups of `size` ranks.
PeerTuning default_tuning(int size) noexcept;
// Returns a copy of `tuning` that allows at most `blocks` blocks in a launch.
PeerTuning with_room(PeerTuning tuning, std::uint32_t blocks) noexcept;

// One rank's view of its group's memory: the parameters that all calls of a lane share. A value.
struct Member {
  int rank = 0;
  int size = 1;
  LaneParams lanes[kLanes];
};
// staging[i] is the address of rank i's staging area, as this rank maps it.
Member make_member(int rank, int size, std::byte* const* staging, HostWords* host) noexcept;

// The output arrays of all ranks, by rank, as this rank maps them. Empty if they are not known.
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
// Returns whether the kernel of the protocol takes SmallParams. The kernel of kReduceEven takes
// EvenParams, and all other kernels take Params.
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

// Selects the kernel of a protocol that reduces. Sums and averages of three float types have
// specialized kernels, and kAny handles all other reductions.
enum class Folding : std::uint8_t { kAny, kSumFloat32, kSumFloat16, kSumBFloat16 };
inline constexpr int kFoldingCount = 4;
Folding folding_of(FoldCode code) noexcept;
// Returns an index into Images::fold. Kernels that reduce are compiled for at most 2, 4 or 8 ranks.
constexpr int capacity_index(int size) noexcept { return size <= 2 ? 0 : size <= 4 ? 1 : 2; }

// One kernel, or one copy if `copy_bytes` is not 0. A value.
struct Step {
  Protocol protocol = Protocol::kBarrier;
  int blocks = 1;
  int threads = 32;
  SmallParams small;  // used if takes_small(protocol)
  EvenParams even;    // used for kReduceEven
  Params params;      // used for all other protocols
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

// Returns the steps of `call` on this rank, in their order on one stream. The result is empty if
// there is nothing to do. Only symmetric calls pass `outs`.
std::vector<Step> plan(const engine::Call& call,
                       const Member& member,
                       const PeerTuning& tuning,
                       PeerOuts outs = {});

// A message to a peer, a message from it, or both.
struct PeerMessage {
  int peer = 0;
  const void* send = nullptr;
  std::size_t send_bytes = 0;
  void* receive = nullptr;
  std::size_t receive_bytes = 0;
};
// Plans the messages of one launch: with each peer at most one message in each direction. The
// peer's launch may also contain messages with other ranks. Messages between two ranks are matched
// in the order of their launches.
std::vector<Step> plan_messages(std::span<const PeerMessage> messages,
                                const Member& member,
                                const PeerTuning& tuning);

}  // namespace hocket::engines::peer
