// The memory through which the ranks of a group exchange data on GPUs, and its rules.
//
// Each rank owns one *staging* area in its GPU's memory, which all other ranks map. A *channel* is
// the thread block with the same number on every rank. Channels share nothing, so blocks may run in
// any order and number. A *lane* separates messages between two ranks from collectives: each lane
// has its own links. A *link* goes from one rank to another, within a channel and a lane.
//
// Data moves over a link in *steps*, counted from 0 without end. Both ends count the same steps,
// because both know the data of each call. The step number modulo the number of slots selects a
// *slot* in the receiver's staging area. There are two kinds of slots. Packets combine data and
// flag, for low latency. A chunk is announced by a counter, for bandwidth. A step without data
// takes no slot, but may be announced.
//
//   sender                              receiver's staging
//   step s  ------- data ------->       slot s mod (number of slots)
//   credit  <-- steps consumed ---
//
// The rule that protects slots: step s is written only when the receiver has consumed the steps up
// to s - (number of slots). The receiver reports this in the *credit*, a counter in the sender's
// staging area. A kernel gives no credit for its last steps, because it would have to wait for a
// round trip. The next kernel starts with that. Kernels advance all counters, which are in GPU
// memory. So a captured graph can be replayed without the host.
//
// Each rank numbers its *peers* in rank order, without itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/peer/kernels/marks.h"

namespace hocket::engines::peer {

inline constexpr int kMaxRanks = 8;
inline constexpr int kMaxPeers = kMaxRanks - 1;
inline constexpr int kLanes = 2;  // for calls
inline constexpr int kCollectives = 0;
inline constexpr int kMessages = 1;
inline constexpr int kResults = 2;  // reductions by chunks, in addition to kCollectives; without
                                    // packets
inline constexpr int kAllLanes = 3;
inline constexpr int kMaxChannels = 64;

// The largest number of threads in a block for each kind of protocol. Packets use one warp for each
// group. Chunks use at least one warp for each peer.
inline constexpr std::uint32_t kSmallThreads = 256;
inline constexpr int kChunkBlock = 512;
// With many ranks a thread needs more registers.
constexpr int packet_block(int size) noexcept { return size <= 4 ? 384 : 256; }

// Small data moves as one vector in each thread, in two packets.
inline constexpr int kSmallChannels = 32;
inline constexpr std::size_t kSmallBytes = std::size_t{kSmallChannels} * kSmallThreads * 16;

// Other packet data moves in groups: one warp sends a group as kRows packets in each lane. The
// adjacent packets of eight lanes form a line. It has one flag, in its last packet; see bundles.h.
inline constexpr std::uint32_t kLanesOfGroup = 32;
inline constexpr std::uint32_t kLanesOfLine = 8;
inline constexpr std::uint32_t kRows = 4;
inline constexpr std::uint32_t kVectorsOfPair = 2 * kLanesOfGroup - kLanesOfGroup / kLanesOfLine;
inline constexpr std::uint32_t kVectorsOfGroup = kRows / 2 * kVectorsOfPair;
inline constexpr std::uint32_t kPacketsOfGroup = kLanesOfGroup * kRows;
inline constexpr std::uint32_t kGroupsOfSlot = 12;
inline constexpr std::uint32_t kPacketBytes = 16;
// A slot has space for groups, followed by space for small packets. They are separate, because the
// flag of one kind lies where the other kind has data, which must not be taken for a flag.
inline constexpr std::uint32_t kSmallAt = kGroupsOfSlot * kPacketsOfGroup;
inline constexpr std::uint32_t kPacketsOfSlot = kSmallAt + 2 * kSmallThreads;
inline constexpr std::uint32_t kPacketSlotBytes = kPacketsOfSlot * kPacketBytes;
inline constexpr std::uint32_t kPacketSlots = 4;

// A chunk is long enough to hide the round trip that announces it. With more ranks, more links
// share the wires.
constexpr std::uint32_t chunk_bytes(int lane, int size) noexcept {
  const std::uint32_t large = size <= 2 ? 128 * 1024 : size <= 4 ? 64 * 1024 : 32 * 1024;
  return lane == kMessages && size > 2 ? 2 * large : large;
}
constexpr std::uint32_t chunk_slots(int lane) noexcept { return lane == kMessages ? 2 : 3; }

// The counters of a rank's links with one peer in one channel: its own half, and the half that the
// peer writes. All start at zero.
struct alignas(32) OwnCounters {
  std::uint64_t sent = 0;      // steps sent to the peer
  std::uint64_t received = 0;  // steps received from the peer
  std::uint64_t opened = 0;    // how often this rank opened its arrays to the peer
  std::uint64_t entered = 0;   // how often this rank entered the peer's arrays
};
struct alignas(32) PeerCounters {
  std::uint64_t credit = 0;   // steps from this rank that the peer has consumed
  std::uint64_t arrived = 0;  // steps from the peer whose chunks have arrived
  std::uint64_t opened = 0;   // how often the peer opened its arrays
  std::uint64_t unused = 0;
};
struct Link {
  OwnCounters own;
  PeerCounters peer;
};
static_assert(sizeof(Link) == 64);

enum class KernelVerdict : std::uint32_t { kNone = 0, kAborted = 1, kDeadline = 2 };

// Other state of a rank. All starts at zero.
struct Header {
  // A Verdict; not 0: a kernel of this group gave up, and all later ones end at once.
  std::uint32_t dead = 0;
  std::uint32_t unused = 0;
  // Time in ns at which a kernel last read the host's words. They are far away. If all waiting
  // threads read them at once, each read takes long.
  std::uint64_t looked = 0;
  std::uint64_t unused_too[14] = {};
};
static_assert(sizeof(Header) == 128);

// One for each rank, in host memory that its GPU can access. The host writes `abort`. Kernels write
// `waits` while they wait for long. The first kernel that gives up writes the rest, `verdict` last.
// All starts at zero.
struct HostWords {
  std::uint32_t abort = 0;  // not 0: kernels of this group must end
  std::uint32_t verdict = 0;
  std::uint32_t missing = 0;  // one bit for each peer whose data had not arrived
  std::uint32_t lane = 0;
  std::uint64_t limit_ns = 0;  // the limit of that wait
  std::uint64_t waits = 0;     // see waiting_word
  std::uint64_t unused[4] = {};
};
static_assert(sizeof(HostWords) == 64);

// Encodes the call in which a kernel waits and the time of its last check, in units of about a
// microsecond.
constexpr std::uint64_t waiting_word(std::uint32_t call, std::uint64_t now_ns) noexcept {
  return std::uint64_t{call} << 32 | static_cast<std::uint32_t>(now_ns >> 10);
}

// The offsets in a rank's staging area, equal on all ranks of a group of `size`. `peer` is the
// number of a peer as the area's owner counts.
struct Layout {
  static constexpr std::size_t kHeaderBytes = 4096;
  static constexpr std::size_t kLinksBytes = sizeof(Link) * kAllLanes * kMaxChannels * kMaxRanks;

  static constexpr std::size_t link(int lane, int channel, int peer) noexcept {
    const int index = (lane * kMaxChannels + channel) * kMaxRanks + peer;
    return kHeaderBytes + static_cast<std::size_t>(index) * sizeof(Link);
  }
  // Return the offset of a step's slot.
  static constexpr std::size_t packets(
      int size, int lane, int channel, int peer, std::uint64_t step) noexcept {
    const auto slot = static_cast<std::uint32_t>(step) % kPacketSlots;
    return kHeaderBytes + kLinksBytes +
           (index(size, lane, channel, peer) * kPacketSlots + slot) * kPacketSlotBytes;
  }
  static constexpr std::size_t chunk(
      int size, int lane, int channel, int peer, std::uint64_t step) noexcept {
    std::size_t before = 0;
    for (int other = 0; other < lane; ++other) before += lane_bytes(other, size);
    const std::uint32_t slots = chunk_slots(lane);
    const std::uint64_t slot = step % slots;  // all bits of `step` count, because `slots` is not a
                                              // power of two
    return zeroed_bytes(size) + before +
           (index(size, 0, channel, peer) * slots + slot) * chunk_bytes(lane, size);
  }

  // Returns the number of bytes, from the beginning, that must be zero when the group starts.
  static constexpr std::size_t zeroed_bytes(int size) noexcept {
    return kHeaderBytes + kLinksBytes + kLanes * links(size) * kPacketSlots * kPacketSlotBytes;
  }
  static constexpr std::size_t bytes(int size) noexcept {
    return zeroed_bytes(size) + lane_bytes(kCollectives, size) + lane_bytes(kMessages, size) +
           lane_bytes(kResults, size);
  }

 private:
  static constexpr std::size_t index(int size, int lane, int channel, int peer) noexcept {
    return static_cast<std::size_t>((lane * kMaxChannels + channel) * (size - 1) + peer);
  }
  static constexpr std::size_t links(int size) noexcept {
    return static_cast<std::size_t>(kMaxChannels * (size - 1));
  }
  static constexpr std::size_t lane_bytes(int lane, int size) noexcept {
    return links(size) * chunk_slots(lane) * chunk_bytes(lane, size);
  }
};

}  // namespace hocket::engines::peer
