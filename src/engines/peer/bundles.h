// Bundles: up to three vectors of one lane, which travel as four packets. The lanes of a warp, side
// by side, make a group: vector r of lane l is vector 32 r + l of the group, so arrays are read and
// written without gaps; so are the packets.
#pragma once

#include <cstdint>

#include "engines/peer/block.h"
#include "engines/peer/fold.h"

namespace hocket::engines::peer {

struct Bundle {
  Vector row[kRows];
};
// The same as it lies in a slot: each packet the first three words of a vector, the last one the
// fourth words.
struct PackedBundle {
  Packet packet[4];
};

// What of a part one channel moves in one round, in vectors. Empty: nothing.
struct Strip {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};
HOCKET_ANYWHERE Strip strip_of(const Part& part, int channel, std::uint32_t round) {
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

// How many vectors of a strip lane `lane` of group `group` has.
HOCKET_ANYWHERE std::uint32_t rows_of(const Strip& strip, std::uint32_t group, std::uint32_t lane) {
  const std::uint32_t before = group * kVectorsOfGroup + lane;
  if (before >= strip.count) return 0;
  const std::uint32_t rows = (strip.count - before + kLanesOfGroup - 1) / kLanesOfGroup;
  return rows < kRows ? rows : kRows;
}

// Whether all rows of the bundle are there and plain: the common case, of large arrays.
HOCKET_ANYWHERE bool is_plain(const Part& part, std::uint32_t vector) {
  const std::uint64_t end = std::uint64_t{vector + (kRows - 1) * kLanesOfGroup + 1} * kVectorBytes;
  return end <= part.bytes && is_plain(part.at, 0);
}

HOCKET_ANYWHERE Bundle load_bundle(const Part& part, std::uint32_t vector, std::uint32_t rows) {
  Bundle bundle;
  if (rows == kRows && is_plain(part, vector)) {
    const std::byte* from = part.at + std::uint64_t{vector} * kVectorBytes;
    HOCKET_UNROLL
    for (std::uint32_t r = 0; r < kRows; ++r) {
      bundle.row[r] = load_aligned<Vector>(from + r * kLanesOfGroup * kVectorBytes);
    }
    return bundle;
  }
  HOCKET_UNROLL
  for (std::uint32_t r = 0; r < kRows; ++r) {
    bundle.row[r] = Vector{};
    if (r < rows) bundle.row[r] = load_vector(part.at, part.bytes, vector + r * kLanesOfGroup);
  }
  return bundle;
}
HOCKET_ANYWHERE void store_bundle(const Part& part,
                                  std::uint32_t vector,
                                  std::uint32_t rows,
                                  const Bundle& bundle) {
  if (rows == kRows && is_plain(part, vector)) {
    std::byte* to = part.at + std::uint64_t{vector} * kVectorBytes;
    HOCKET_UNROLL
    for (std::uint32_t r = 0; r < kRows; ++r) {
      store_aligned(to + r * kLanesOfGroup * kVectorBytes, bundle.row[r]);
    }
    return;
  }
  HOCKET_UNROLL
  for (std::uint32_t r = 0; r < kRows; ++r) {
    if (r < rows) store_vector(part.at, part.bytes, vector + r * kLanesOfGroup, bundle.row[r]);
  }
}

// `slot` is the lane's first packet in its group.
template <typename Machine>
HOCKET_ANYWHERE void send_bundle(
    Machine& m, Packet* slot, std::uint32_t rows, std::uint32_t flag, const Bundle& bundle) {
  const Vector* row = bundle.row;
  HOCKET_UNROLL
  for (std::uint32_t r = 0; r < kRows; ++r) {
    if (r >= rows) continue;
    m.store_packet(slot + r * kLanesOfGroup,
                   {{row[r].word[0], row[r].word[1], row[r].word[2]}, flag});
  }
  m.store_packet(slot + kRows * kLanesOfGroup,
                 {{row[0].word[3], row[1].word[3], row[2].word[3]}, flag});
}

// Reads without waiting. Rows that are not there are read from where others are, so that there is
// no branch between the loads.
template <typename Machine>
HOCKET_ANYWHERE PackedBundle peek_bundle(Machine& m, const Packet* slot, std::uint32_t rows) {
  PackedBundle packed;
  packed.packet[0] = m.load_packet(slot);
  packed.packet[1] = m.load_packet(slot + (rows > 1 ? 1 : 0) * kLanesOfGroup);
  packed.packet[2] = m.load_packet(slot + (rows > 2 ? 2 : 0) * kLanesOfGroup);
  packed.packet[3] = m.load_packet(slot + kRows * kLanesOfGroup);
  return packed;
}
HOCKET_ANYWHERE bool is_there(const PackedBundle& packed, std::uint32_t flag) {
  return packed.packet[0].flag == flag && packed.packet[1].flag == flag &&
         packed.packet[2].flag == flag && packed.packet[3].flag == flag;
}
HOCKET_ANYWHERE Vector row_of(const PackedBundle& packed, int row) {
  const Packet& packet = packed.packet[row];
  return {{packet.word[0], packet.word[1], packet.word[2], packed.packet[3].word[row]}};
}
HOCKET_ANYWHERE Bundle unpacked(const PackedBundle& packed) {
  return {{row_of(packed, 0), row_of(packed, 1), row_of(packed, 2)}};
}

// The bundles whose first packets are `packet` of each peer's slot, polled together; rows(j) of
// peer j, which may be 0. Those of peers that are not there are read from another one's, so that
// loads have no branch between them. False: given up.
template <int kPeers, typename Machine, typename Rows>
HOCKET_ANYWHERE bool collect(Block<Machine>& block,
                             std::uint32_t packet,
                             std::uint64_t ahead,
                             const Rows& rows,
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
  std::uint32_t missing;
  do {
    HOCKET_UNROLL
    for (int j = 0; j < kPeers; ++j) packed[j] = peek_bundle(m, slot[j], rows(j));
    missing = 0;
    HOCKET_UNROLL
    for (int j = 0; j < kPeers; ++j) {
      if (rows(j) > 0 && !is_there(packed[j], flag[j])) missing |= 1u << j;
    }
  } while (missing != 0 && !block.gives_up(missing));
  return missing == 0;
}

// What all ranks have in `rows` rows of one place: peers' packets and this rank's own.
template <int kPeers, typename Fold, typename Told>
HOCKET_ANYWHERE Bundle fold_bundles(const Told& p,
                                    const PackedBundle (&packed)[kPeers],
                                    const Bundle& own,
                                    std::uint32_t rows) {
  Bundle sum;
  HOCKET_UNROLL
  for (int r = 0; r < static_cast<int>(kRows); ++r) {
    if (static_cast<std::uint32_t>(r) >= rows) continue;
    Vector come[kPeers];
    HOCKET_UNROLL
    for (int j = 0; j < kPeers; ++j) come[j] = row_of(packed[j], r);
    sum.row[r] = Fold::template apply_around<kPeers>(p.fold, come, own.row[r], p.rank, p.peers);
  }
  return sum;
}

}  // namespace hocket::engines::peer
