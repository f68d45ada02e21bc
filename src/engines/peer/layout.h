// The memory through which the ranks of a group exchange data on GPUs, and its rules.
//
// Each rank owns one *staging* area in its GPU's memory, which all other ranks map. A *channel*
// joins the thread blocks with the same number on all ranks. Channels share nothing, so the blocks
// of a rank may run in any order, and any number of them at the same time. A *lane* is a separate
// set of links, so that messages between two ranks do not disturb collectives. A *link* goes from
// one rank to another, within one channel and one lane.
//
// Data moves over a link in *steps*, counted from 0 without end. Both ends count the same steps,
// because both know how much data each call moves. The step number modulo the number of slots
// selects a *slot* in the receiver's staging area. There are two kinds of slots. One kind holds
// *packets*, which combine data and flags, for low latency. The other kind holds a *chunk*, which a
// counter announces, for high bandwidth. A step without data uses no slot, but the sender may still
// announce it.
//
//   sender                              receiver's staging
//   step s  ------- data ------->       slot s mod (number of slots)
//   credit  <-- steps consumed ---
//
// One rule protects the slots: the sender writes step s only when the receiver has consumed the
// steps up to s - (number of slots). The receiver reports its consumed steps in the *credit*, a
// counter in the sender's staging area. A kernel gives no credit for the last steps of its call,
// because this would cost it a round trip. The next kernel gives this credit at its start. All
// counters are in GPU memory, and only kernels advance them. So a captured graph can be replayed
// without the host.
//
// Each rank numbers its *peers* in rank order, without itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/peer/kernels/marks.h"

namespace hocket::engines::peer {

inline constexpr int kMaxRanks = 8;
inline constexpr int kMaxPeers = kMaxRanks - 1;
inline constexpr int kLanes = 2;  // the lanes that a call may run on: the next two
inline constexpr int kCollectives = 0;
inline constexpr int kMessages = 1;
inline constexpr int kResults = 2;  // carries the results of reductions by chunks, whose inputs use
                                    // kCollectives; it has no packets
inline constexpr int kAllLanes = 3;
inline constexpr int kMaxChannels = 64;

// The largest number of threads in a block, for small calls, for chunks, and for packets. Protocols
// by packets use one warp for each group. Protocols by chunks use at least one warp for each peer.
inline constexpr std::uint32_t kSmallThreads = 256;
inline constexpr int kChunkBlock = 512;
// With many ranks a thread needs more registers, so a block has fewer threads.
constexpr int packet_block(int size) noexcept { return size <= 4 ? 384 : 256; }

// In a small call each thread moves one vector, in two packets. kSmallBytes is the limit of the
// data from one rank to another.
inline constexpr int kSmallChannels = 32;
inline constexpr std::size_t kSmallBytes = std::size_t{kSmallChannels} * kSmallThreads * 16;

// In other calls by packets, data moves in *groups*: one warp sends a group, kRows packets by each
// lane of the warp. The adjacent packets of eight lanes form a *line*. A line has one flag, in its
// last packet; see bundles.h.
inline constexpr std::uint32_t kLanesOfGroup = 32;
inline constexpr std::uint32_t kLanesOfLine = 8;
inline constexpr std::uint32_t kRows = 4;
inline constexpr std::uint32_t kVectorsOfPair = 2 * kLanesOfGroup - kLanesOfGroup / kLanesOfLine;
inline constexpr std::uint32_t kVectorsOfGroup = kRows / 2 * kVectorsOfPair;
inline constexpr std::uint32_t kPacketsOfGroup = kLanesOfGroup * kRows;
inline constexpr std::uint32_t kGroupsOfSlot = 12;
inline constexpr std::uint32_t kPacketBytes = 16;
// A slot has space for groups, followed by space for the packets of small calls. The two spaces are
// separate, because the flags of one kind lie at positions where the other kind has data. A reader
// could take this data for a flag.
inline constexpr std::uint32_t kSmallAt = kGroupsOfSlot * kPacketsOfGroup;
inline constexpr std::uint32_t kPacketsOfSlot = kSmallAt + 2 * kSmallThreads;
inline constexpr std::uint32_t kPacketSlotBytes = kPacketsOfSlot * kPacketBytes;
inline constexpr std::uint32_t kPacketSlots = 4;

// Returns the largest size of a chunk. A chunk is long enough to hide the latency of its
// announcement. With more ranks chunks are shorter, because more links share the wires and are in
// flight at the same time.
constexpr std::uint32_t chunk_bytes(int lane, int size) noexcept {
  const std::uint32_t large = size <= 2 ? 128 * 1024 : size <= 4 ? 64 * 1024 : 32 * 1024;
  return lane == kMessages && size > 2 ? 2 * large : large;
}
constexpr std::uint32_t chunk_slots(int lane) noexcept { return lane == kMessages ? 2 : 3; }

// The counters of a rank's two links with one peer, in one channel and lane. The rank itself writes
// OwnCounters, the peer writes PeerCounters. All start at zero.
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

// Other state of a rank, at the beginning of its staging area. All starts at zero.
struct Header {
  // A KernelVerdict. If it is not 0, a kernel of this group gave up, and all later kernels end
  // immediately.
  std::uint32_t dead = 0;
  std::uint32_t unused = 0;
  // The GPU's time in ns at which a thread last read HostWords. Only one thread reads them every
  // few microseconds, because they lie across a slow bus.
  std::uint64_t looked = 0;
  std::uint64_t unused_too[14] = {};
};
static_assert(sizeof(Header) == 128);

// The words by which a rank's host and its kernels talk to each other, in host memory that the GPU
// can access. The host writes `abort`. A kernel that waits longer than a millisecond writes
// `waits`. The first kernel that gives up writes the other words, `verdict` last. All start at
// zero.
struct HostWords {
  std::uint32_t abort = 0;     // not 0: the kernels of this group must end
  std::uint32_t verdict = 0;   // a KernelVerdict
  std::uint32_t missing = 0;   // one bit for each peer whose data had not arrived
  std::uint32_t lane = 0;      // the lane of the kernel that gave up
  std::uint64_t limit_ns = 0;  // the time limit of the wait that ended
  std::uint64_t waits = 0;     // see waiting_word
  std::uint64_t unused[4] = {};
};
static_assert(sizeof(HostWords) == 64);

// Encodes the number of the call in which a kernel waits, and the time of the kernel's last check
// in units of 1024 ns.
constexpr std::uint64_t waiting_word(std::uint32_t call, std::uint64_t now_ns) noexcept {
  return std::uint64_t{call} << 32 | static_cast<std::uint32_t>(now_ns >> 10);
}

// The offsets in a rank's staging area in bytes, equal on all ranks of a group of `size` ranks.
// `peer` is the number of a peer among the peers of the area's owner.
//
//   | Header | links | packet slots of 2 lanes | chunk slots: collectives | messages | results |
//   |<---------- zeroed_bytes --------------->|
struct Layout {
  static constexpr std::size_t kHeaderBytes = 4096;
  static constexpr std::size_t kLinksBytes = sizeof(Link) * kAllLanes * kMaxChannels * kMaxRanks;

  static constexpr std::size_t link(int lane, int channel, int peer) noexcept {
    const int index = (lane * kMaxChannels + channel) * kMaxRanks + peer;
    return kHeaderBytes + static_cast<std::size_t>(index) * sizeof(Link);
  }
  // Return the offset of the slot of a step.
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
    const std::uint64_t slot = step % slots;  // of all 64 bits, because `slots` may be 3, which
                                              // does not divide 2^32
    return zeroed_bytes(size) + before +
           (index(size, 0, channel, peer) * slots + slot) * chunk_bytes(lane, size);
  }

  // Returns how many bytes at the beginning of the area must be zero when the group starts.
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
