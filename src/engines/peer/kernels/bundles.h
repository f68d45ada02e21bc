// Groups and bundles. A *group* is the packets that a warp sends together. A *bundle* is one lane's
// part of a group. In this file a lane is a lane of a warp.
//
// The lanes of a warp write adjacent packets. The packets of eight lanes fill a *line* of 128
// bytes, which moves as a whole. A line has one flag, in the packet of its last lane. So this
// packet has room for only half a vector. Two *rows* of packets form a *pair*, which holds 60
// vectors. Each lane puts one of the first 32 vectors into the first row. The 28 lanes that do not
// end a line put the other vectors into the second row. A lane that ends a line puts the second
// half of its vector into the second row. (NCCL's protocol LL128 has a similar layout.)
//
//   lane         0    1    ...  6    7 (ends a line)      8    ...
//   first row    v0   v1   ...  v6   half of v7 + flag    v8   ...
//   second row   v32  v33  ...  v38  rest of v7 + flag    v39  ...
#pragma once

#include <cstdint>

#include "engines/peer/fold.h"
#include "engines/peer/kernels/block.h"

namespace hocket::engines::peer {

// Consecutive vectors of an array. A strip may be empty.
struct Strip {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};
// Returns the vectors of a part that one channel moves in one round.
HOCKET_ANYWHERE Strip strip_of(const CutArray& part, int channel, std::uint32_t round) {
  const auto c = static_cast<std::uint32_t>(channel);
  if (c >= part.channels) return {};
  const auto vectors = static_cast<std::uint32_t>(vectors_in(part.bytes));
  std::uint32_t end = (c + 1) * part.unit * kVectorsOfGroup;
  const std::uint32_t first = (c * part.unit + round * kGroupsOfSlot) * kVectorsOfGroup;
  if (end > vectors) end = vectors;
  if (first >= end) return {};
  const std::uint32_t most = kGroupsOfSlot * kVectorsOfGroup;
  return {first, end - first < most ? end - first : most};
}
// Returns the part of a strip that one warp sends together. `group` counts such parts from 0.
HOCKET_ANYWHERE Strip group_of(const Strip& strip, std::uint32_t group) {
  const std::uint32_t before = group * kVectorsOfGroup;
  if (before >= strip.count) return {};
  const std::uint32_t left = strip.count - before;
  return {strip.first + before, left < kVectorsOfGroup ? left : kVectorsOfGroup};
}

// A lane of a group. A value.
struct GroupLane {
  std::uint32_t number;

  HOCKET_ANYWHERE bool ends_line() const { return number % kLanesOfLine == kLanesOfLine - 1; }
  // Returns the index in the group of this lane's vector in a row.
  HOCKET_ANYWHERE std::uint32_t vector(std::uint32_t row) const {
    const std::uint32_t second = kLanesOfGroup + number - number / kLanesOfLine;
    return row / 2 * kVectorsOfPair + (row % 2 == 0 ? number : second);
  }
  // Returns whether this lane has a vector in a row, in a group of `count` vectors.
  HOCKET_ANYWHERE bool has(std::uint32_t row, std::uint32_t count) const {
    return (row % 2 == 0 || !ends_line()) && vector(row) < count;
  }
};

// One lane's vectors of a group. Rows in which the lane has no vector are not used.
struct Bundle {
  Vector row[kRows];
};
// A bundle as it lies in a slot.
struct PackedBundle {
  LinePacket row[kRows];
};

// Returns whether all vectors of a group exist and are aligned, as in most groups of large arrays.
HOCKET_ANYWHERE bool is_plain(const CutArray& part, const Strip& group) {
  const std::uint64_t end = std::uint64_t{group.first + kVectorsOfGroup} * kVectorBytes;
  return group.count == kVectorsOfGroup && end <= part.bytes && is_plain(part.at, 0);
}

HOCKET_ANYWHERE Bundle load_bundle(const CutArray& part, const Strip& group, GroupLane lane) {
  Bundle bundle;
  if (is_plain(part, group)) {
    const std::byte* from = part.at + std::uint64_t{group.first} * kVectorBytes;
    HOCKET_UNROLL
    for (std::uint32_t r = 0; r < kRows; ++r) {
      bundle.row[r] = Vector{};
      if (!lane.has(r, kVectorsOfGroup)) continue;
      bundle.row[r] = load_aligned<Vector>(from + lane.vector(r) * kVectorBytes);
    }
    return bundle;
  }
  HOCKET_UNROLL
  for (std::uint32_t r = 0; r < kRows; ++r) {
    bundle.row[r] = Vector{};
    if (!lane.has(r, group.count)) continue;
    bundle.row[r] = load_vector(part.at, part.bytes, group.first + lane.vector(r));
  }
  return bundle;
}
HOCKET_ANYWHERE void store_bundle(const CutArray& part,
                                  const Strip& group,
                                  GroupLane lane,
                                  const Bundle& bundle) {
  if (is_plain(part, group)) {
    std::byte* to = part.at + std::uint64_t{group.first} * kVectorBytes;
    HOCKET_UNROLL
    for (std::uint32_t r = 0; r < kRows; ++r) {
      if (!lane.has(r, kVectorsOfGroup)) continue;
      store_aligned(to + lane.vector(r) * kVectorBytes, bundle.row[r]);
    }
    return;
  }
  HOCKET_UNROLL
  for (std::uint32_t r = 0; r < kRows; ++r) {
    if (!lane.has(r, group.count)) continue;
    store_vector(part.at, part.bytes, group.first + lane.vector(r), bundle.row[r]);
  }
}

// Sends a bundle. All lanes of a warp call it together. `slot` is the lane's first packet in the
// group, and `count` the number of vectors in the group.
template <typename Machine>
HOCKET_ANYWHERE void send_bundle(Machine& m,
                                 Packet* slot,
                                 std::uint32_t count,
                                 GroupLane lane,
                                 std::uint32_t flag,
                                 const Bundle& bundle) {
  m.all_lanes(true);  // so that all lanes store at the same time, which makes whole lines
  HOCKET_UNROLL
  for (std::uint32_t r = 0; r < kRows; ++r) {
    if (r / 2 * kVectorsOfPair >= count) continue;
    const Vector& v = bundle.row[r];
    Packet packet{{v.word[0], v.word[1], v.word[2]}, v.word[3]};
    if (lane.ends_line()) {
      const Vector& whole = bundle.row[r / 2 * 2];
      packet = {{whole.word[r % 2 * 2], whole.word[r % 2 * 2 + 1], 0}, flag};
    }
    m.store_packet(slot + r * kLanesOfGroup, packet);
  }
}

// Reads a bundle without waiting for it. In place of a row that does not exist, it reads a
// different row, so that no branch separates the loads.
template <typename Machine>
HOCKET_ANYWHERE PackedBundle peek_bundle(
    Machine& m, const Packet* slot, std::uint32_t count, GroupLane lane, std::uint32_t flag) {
  PackedBundle packed;
  HOCKET_UNROLL
  for (std::uint32_t r = 0; r < kRows; ++r) {
    const std::uint32_t row = r / 2 * kVectorsOfPair < count ? r : r % 2;
    packed.row[r] = m.load_line_packet(slot + row * kLanesOfGroup, lane.number, flag);
  }
  return packed;
}
// Returns whether all rows of a bundle have arrived.
HOCKET_ANYWHERE bool is_there(const PackedBundle& packed, std::uint32_t flag) {
  return packed.row[0].flag == flag && packed.row[1].flag == flag && packed.row[2].flag == flag &&
         packed.row[3].flag == flag;
}
// Returns the lane's vector in a row.
HOCKET_ANYWHERE Vector row_of(const PackedBundle& packed, std::uint32_t row, GroupLane lane) {
  const Packet& packet = packed.row[row].packet;
  if (!lane.ends_line()) {
    return {{packet.word[0], packet.word[1], packet.word[2], packet.flag}};
  }
  const Packet& second = packed.row[row | 1].packet;
  return {{packet.word[0], packet.word[1], second.word[0], second.word[1]}};
}
HOCKET_ANYWHERE Bundle unpacked(const PackedBundle& packed, GroupLane lane) {
  Bundle bundle;
  HOCKET_UNROLL
  for (std::uint32_t r = 0; r < kRows; ++r) bundle.row[r] = row_of(packed, r, lane);
  return bundle;
}

// Waits for one group from each peer j with counts(j) > 0 vectors. All lanes of a warp call it
// together. The group lies at `packet` in the slot of step received + `ahead`. The slots of the
// other peers are read, too, so that no branch separates the loads. Returns false if the warp gave
// up.
template <int kPeers, typename Machine, typename Counts>
HOCKET_ANYWHERE bool collect(Block<Machine>& block,
                             std::uint32_t packet,
                             GroupLane lane,
                             std::uint64_t ahead,
                             const Counts& counts,
                             PackedBundle (&packed)[kPeers]) {
  Machine& m = block.m;
  const auto& p = block.p;
  const Packet* slot[kPeers];
  std::uint32_t flag[kPeers];
  HOCKET_UNROLL
  for (int j = 0; j < kPeers; ++j) {
    const int peer = j < static_cast<int>(p.peers) ? j : 0;
    const std::uint64_t step = m.shared().received[peer] + ahead;
    slot[j] = block.packets_from(peer, step) + packet;
    flag[j] = flag_of(step);
  }
  while (true) {
    m.all_lanes(true);  // so that all lanes load at the same time, which reads whole lines
    HOCKET_UNROLL
    for (int j = 0; j < kPeers; ++j) packed[j] = peek_bundle(m, slot[j], counts(j), lane, flag[j]);
    std::uint32_t missing = 0;
    HOCKET_UNROLL
    for (int j = 0; j < kPeers; ++j) {
      if (counts(j) > 0 && !is_there(packed[j], flag[j])) missing |= 1u << j;
    }
    if (m.all_lanes(missing == 0)) return true;
    if (block.gives_up_together(missing)) return false;
  }
}

// Waits for one group of `count` vectors from one peer, in the slot of the next step. Returns false
// if the warp gave up.
template <typename Machine>
HOCKET_ANYWHERE bool collect_one(Block<Machine>& block,
                                 int peer,
                                 std::uint32_t packet,
                                 GroupLane lane,
                                 std::uint32_t count,
                                 PackedBundle& packed) {
  Machine& m = block.m;
  const std::uint64_t step = m.shared().received[peer];
  const Packet* slot = block.packets_from(peer, step) + packet;
  while (true) {
    m.all_lanes(true);
    packed = peek_bundle(m, slot, count, lane, flag_of(step));
    if (m.all_lanes(is_there(packed, flag_of(step)))) return true;
    if (block.gives_up_together(1u << peer)) return false;
  }
}

// Combines the bundles of all ranks at the same position: the peers' packets and this rank's `own`.
template <int kPeers, typename Fold, typename Told>
HOCKET_ANYWHERE Bundle fold_bundles(const Told& p,
                                    const PackedBundle (&packed)[kPeers],
                                    const Bundle& own,
                                    std::uint32_t count,
                                    GroupLane lane) {
  Bundle sum;
  HOCKET_UNROLL
  for (std::uint32_t r = 0; r < kRows; ++r) {
    sum.row[r] = Vector{};
    if (!lane.has(r, count)) continue;
    Vector come[kPeers];
    HOCKET_UNROLL
    for (int j = 0; j < kPeers; ++j) come[j] = row_of(packed[j], r, lane);
    sum.row[r] = Fold::template apply_around<kPeers>(p.fold, come, own.row[r], p.rank, p.peers);
  }
  return sum;
}

}  // namespace hocket::engines::peer
