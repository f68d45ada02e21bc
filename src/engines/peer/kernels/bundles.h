// Groups and bundles: what a warp sends at once, and one lane's share of it.
//
// The lanes of a warp write packets side by side, so that eight of them fill a line of 128 bytes,
// which travels as a whole and has one flag, in its last lane's packet: that lane has room for half
// a vector. Two rows of packets are a pair: of its vectors, the first 32 are a lane's each, and the
// other 28 go to the lanes that end no line in its second row; where lines end, the second row has
// the second half of the lane's vector. (NCCL's protocol LL128 lays its lines out likewise.)
#pragma once

#include <cstdint>

#include "engines/peer/fold.h"
#include "engines/peer/kernels/block.h"

namespace hocket::engines::peer {

// Some vectors of an array, side by side. Empty: nothing.
struct Strip {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};
// What of a part one channel moves in one round.
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
// What of a strip one group has.
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
  // Which of a group's vectors is this lane's in a row.
  HOCKET_ANYWHERE std::uint32_t vector(std::uint32_t row) const {
    const std::uint32_t second = kLanesOfGroup + number - number / kLanesOfLine;
    return row / 2 * kVectorsOfPair + (row % 2 == 0 ? number : second);
  }
  // Whether there is one, of `count`.
  HOCKET_ANYWHERE bool has(std::uint32_t row, std::uint32_t count) const {
    return (row % 2 == 0 || !ends_line()) && vector(row) < count;
  }
};

// One lane's vectors of a group; rows that it does not have are not looked at.
struct Bundle {
  Vector row[kRows];
};
// The same as it lies in a slot.
struct PackedBundle {
  LinePacket row[kRows];
};

// Whether all vectors are there and plain: the common case, of large arrays.
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

// All lanes of a warp. `slot` is the lane's first packet in its group, which has `count` vectors.
template <typename Machine>
HOCKET_ANYWHERE void send_bundle(Machine& m,
                                 Packet* slot,
                                 std::uint32_t count,
                                 GroupLane lane,
                                 std::uint32_t flag,
                                 const Bundle& bundle) {
  m.all_lanes(true);  // side by side
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

// Reads without waiting. Rows that are not there are read from where others are, so that there is
// no branch between the loads.
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
HOCKET_ANYWHERE bool is_there(const PackedBundle& packed, std::uint32_t flag) {
  return packed.row[0].flag == flag && packed.row[1].flag == flag && packed.row[2].flag == flag &&
         packed.row[3].flag == flag;
}
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

// All lanes of a warp: waits for the group at `packet` in the slots of step received + `ahead` of
// all peers j with counts(j) > 0, that many vectors; the places of others are read too, so that
// loads have no branch between them. False: given up.
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
    m.all_lanes(true);  // side by side
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

// The same for one peer.
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

// What all ranks have in one place: peers' packets and this rank's own.
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
