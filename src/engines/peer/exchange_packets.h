// Movement of small arrays: every rank sends packets straight to those who get its data.
#pragma once

#include "engines/peer/bundles.h"

namespace hocket::engines::peer {

namespace exchange_packets_detail {

// Goes through the groups of all peers that `part_of` has something for, a warp a group.
// act(peer, group, lane, rows, vector).
template <typename Machine, typename Act>
HOCKET_ANYWHERE void for_bundles(const Block<Machine>& block,
                                 const Part (&parts)[kMaxRanks],
                                 std::uint32_t round,
                                 const Act& act) {
  const Params& p = block.p;
  const std::uint32_t bundles = p.groups * kLanesOfGroup * p.size;
  const auto threads = static_cast<std::uint32_t>(block.m.threads());
  for (auto i = static_cast<std::uint32_t>(block.m.thread()); i < bundles; i += threads) {
    const std::uint32_t lane = i % kLanesOfGroup;
    const std::uint32_t group = i / kLanesOfGroup / p.size;
    // Each rank begins with its right neighbour.
    std::uint32_t peer = i / kLanesOfGroup % p.size + p.rank + 1;
    if (peer >= p.size) peer -= p.size;
    if (peer == p.rank) continue;
    const Strip strip = strip_of(parts[peer], block.m.channel(), round);
    const std::uint32_t rows = rows_of(strip, group, lane);
    if (rows == 0) continue;
    act(static_cast<int>(peer), group, lane, rows, strip.first + group * kVectorsOfGroup + lane);
  }
}

// The part that stays: all blocks together.
template <typename Machine>
HOCKET_ANYWHERE void copy_own(const Block<Machine>& block) {
  const Part& from = block.p.send[block.p.rank];
  const Part& to = block.p.receive[block.p.rank];
  if (from.at == to.at) return;
  const auto threads = static_cast<std::uint64_t>(block.m.threads());
  const std::uint64_t vectors = vectors_in(to.bytes);
  auto i = static_cast<std::uint64_t>(block.m.channel()) * threads +
           static_cast<std::uint64_t>(block.m.thread());
  for (; i < vectors; i += threads * static_cast<std::uint64_t>(block.m.channels())) {
    store_vector(to.at, to.bytes, i, load_vector(from.at, from.bytes, i));
  }
}

}  // namespace exchange_packets_detail

// Blocks of whole warps. The same thread sends and receives at the same place, so that `send` and
// `receive` of a peer may be one array.
template <typename Machine>
HOCKET_ANYWHERE void exchange_packets(Machine& machine) {
  using namespace exchange_packets_detail;
  Block<Machine> block(machine);
  Machine& m = machine;
  const Params& p = block.p;
  block.open();
  for (std::uint32_t round = 0; round < p.rounds; ++round) {
    const auto sends = [&](int q) { return strip_of(p.send[q], m.channel(), round).count > 0; };
    const auto gets = [&](int q) { return strip_of(p.receive[q], m.channel(), round).count > 0; };
    block.reserve(0, sends);
    if (!block.meet()) return;
    for_bundles(block, p.send, round, [&](int q, auto group, auto lane, auto rows, auto vector) {
      const std::uint64_t step = m.shared().sent[q];
      Packet* slot = block.packets(q, p.rank, step) + group * kPacketsOfGroup + lane;
      send_bundle(m, slot, rows, flag_of(step), load_bundle(p.send[q], vector, rows));
    });
    if (round == 0) copy_own(block);
    for_bundles(block, p.receive, round, [&](int q, auto group, auto lane, auto rows, auto vector) {
      const std::uint64_t step = m.shared().received[q];
      const Packet* slot = block.packets(p.rank, q, step) + group * kPacketsOfGroup + lane;
      PackedBundle packed = peek_bundle(m, slot, rows);
      while (!block.failed && !is_there(packed, flag_of(step))) {
        if (!block.gives_up(1u << q)) packed = peek_bundle(m, slot, rows);
      }
      if (!block.failed) store_bundle(p.receive[q], vector, rows, unpacked(packed));
    });
    if (!block.meet()) return;
    give_back_packets(block, gets);
    block.count_sent(1, sends);
  }
  block.save();
}

}  // namespace hocket::engines::peer
