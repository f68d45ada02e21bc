// The memory through which the ranks of a group exchange data on GPUs, and its rules.
//
// Words: each rank owns one *staging* area in its GPU's memory, mapped by all others. A *channel*
// is the block of one number on every rank; channels share nothing, so that blocks may run in any
// order and number. A *link* goes from one rank to another within a channel and a lane. What
// travels over a link does so in *steps*, counted from 0 without end; both ends count alike, as
// both know what each call moves between them. Each step has a *slot* in the receiver's staging, by
// its number modulo the slots there are: of packets, where data and flag are one (latency), or a
// chunk, announced by a counter (bandwidth). A step that carries nothing takes no slot, but may be
// announced.
//
// The rule that protects slots: step s is written once the receiver's *credit*, a counter in the
// sender's staging, says that steps up to s - (number of slots) have been taken. A kernel gives no
// credit for its last steps, as it would end later by the way there and back; the next one begins
// with it. All counters live in GPU memory and are advanced by the kernels, so a captured graph can
// be replayed with no host at work.
//
// Lanes keep messages between two ranks apart from collectives: each has links of its own.
//
// Each rank numbers its *peers* in the order of their ranks, without itself.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engines/peer/kernels/marks.h"

namespace hocket::engines::peer {

inline constexpr int kMaxRanks = 8;
inline constexpr int kMaxPeers = kMaxRanks - 1;
inline constexpr int kLanes = 2;  // of calls
inline constexpr int kCollectives = 0;
inline constexpr int kMessages = 1;
inline constexpr int kResults = 2;  // of reductions by chunks, beside kCollectives; has no packets
inline constexpr int kAllLanes = 3;
inline constexpr int kMaxChannels = 64;

// The most threads of a block, by the kind of its protocol. A warp a group of packets; a warp a
// peer at least of chunks.
inline constexpr std::uint32_t kSmallThreads = 256;
inline constexpr int kChunkBlock = 512;
// With many ranks a thread needs more registers.
constexpr int packet_block(int size) noexcept { return size <= 4 ? 384 : 256; }

// What is small goes a vector a thread, in two packets.
inline constexpr int kSmallChannels = 32;
inline constexpr std::size_t kSmallBytes = std::size_t{kSmallChannels} * kSmallThreads * 16;

// What is not lies in groups: what one warp sends in kRows packets a lane. Eight lanes' packets
// side by side are a line, which has one flag, in the last of them; see bundles.h.
inline constexpr std::uint32_t kLanesOfGroup = 32;
inline constexpr std::uint32_t kLanesOfLine = 8;
inline constexpr std::uint32_t kRows = 4;
inline constexpr std::uint32_t kVectorsOfPair = 2 * kLanesOfGroup - kLanesOfGroup / kLanesOfLine;
inline constexpr std::uint32_t kVectorsOfGroup = kRows / 2 * kVectorsOfPair;
inline constexpr std::uint32_t kPacketsOfGroup = kLanesOfGroup * kRows;
inline constexpr std::uint32_t kGroupsOfSlot = 12;
inline constexpr std::uint32_t kPacketBytes = 16;
// A slot has room for groups, and behind them for small packets: where these have flags, those have
// data, which must not be taken for flags.
inline constexpr std::uint32_t kSmallAt = kGroupsOfSlot * kPacketsOfGroup;
inline constexpr std::uint32_t kPacketsOfSlot = kSmallAt + 2 * kSmallThreads;
inline constexpr std::uint32_t kPacketSlotBytes = kPacketsOfSlot * kPacketBytes;
inline constexpr std::uint32_t kPacketSlots = 4;

// A chunk holds enough to make up for the way there and back that it takes to announce it. With
// more ranks there are more links to fill the wires.
constexpr std::uint32_t chunk_bytes(int lane, int size) noexcept {
  const std::uint32_t large = size <= 2 ? 128 * 1024 : size <= 4 ? 64 * 1024 : 32 * 1024;
  return lane == kMessages && size > 2 ? 2 * large : large;
}
constexpr std::uint32_t chunk_slots(int lane) noexcept { return lane == kMessages ? 2 : 3; }

// What a rank keeps of its links with one peer in one channel: the own half, and what the peer
// writes. Zero at first.
struct alignas(32) OwnCounters {
  std::uint64_t sent = 0;      // steps to the peer
  std::uint64_t received = 0;  // steps from the peer
  std::uint64_t opened = 0;    // times this rank's arrays were opened to the peer
  std::uint64_t entered = 0;   // times the peer's arrays were entered
};
struct alignas(32) PeerCounters {
  std::uint64_t credit = 0;   // steps from here that the peer has taken
  std::uint64_t arrived = 0;  // steps from the peer whose chunks are here
  std::uint64_t opened = 0;   // times the peer opened its arrays
  std::uint64_t unused = 0;
};
struct Link {
  OwnCounters own;
  PeerCounters peer;
};
static_assert(sizeof(Link) == 64);

enum class KernelVerdict : std::uint32_t { kNone = 0, kAborted = 1, kDeadline = 2 };

// What else a rank keeps for itself. Zero at first.
struct Header {
  // Not 0: a kernel of this group gave up; all later ones end at once. The value is a Verdict.
  std::uint32_t dead = 0;
  std::uint32_t unused = 0;
  // When a kernel last looked at the host's words, in ns: they are far away, and where all that
  // wait look at once, each look takes long.
  std::uint64_t looked = 0;
  std::uint64_t unused_too[14] = {};
};
static_assert(sizeof(Header) == 128);

// One a rank, in host memory that its GPU reaches. `abort` is written by the host, `waits` by
// kernels that have waited for a while, as long as they do, and the rest by the first kernel that
// gave up, `verdict` last. Zero at first.
struct HostWords {
  std::uint32_t abort = 0;  // not 0: kernels of this group shall end
  std::uint32_t verdict = 0;
  std::uint32_t missing = 0;  // a bit a peer: what was waited for had not come from these
  std::uint32_t lane = 0;
  std::uint64_t limit_ns = 0;  // how long was waited for them at most
  std::uint64_t waits = 0;     // see waiting_word
  std::uint64_t unused[4] = {};
};
static_assert(sizeof(HostWords) == 64);

// In what call a kernel waits, and when it did so last, in about a microsecond.
constexpr std::uint64_t waiting_word(std::uint32_t call, std::uint64_t now_ns) noexcept {
  return std::uint64_t{call} << 32 | static_cast<std::uint32_t>(now_ns >> 10);
}

// Where things lie in a rank's staging area; the same on all ranks of a group of `size`. A peer is
// told by its number at the area's owner.
struct Layout {
  static constexpr std::size_t kHeaderBytes = 4096;
  static constexpr std::size_t kLinksBytes = sizeof(Link) * kAllLanes * kMaxChannels * kMaxRanks;

  static constexpr std::size_t link(int lane, int channel, int peer) noexcept {
    const int index = (lane * kMaxChannels + channel) * kMaxRanks + peer;
    return kHeaderBytes + static_cast<std::size_t>(index) * sizeof(Link);
  }
  // The slot of a step.
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
    const std::uint64_t slot = step % slots;  // of all its bits, as `slots` divides no power of two
    return zeroed_bytes(size) + before +
           (index(size, 0, channel, peer) * slots + slot) * chunk_bytes(lane, size);
  }

  // What has to be zero when the group starts: the first bytes of the area.
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
