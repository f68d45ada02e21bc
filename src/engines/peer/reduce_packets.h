// Reductions of fairly small arrays: in one hop, where every rank sends its data to whoever reduces
// it, and in two, where the results of parts are sent to all.
#pragma once

#include "engines/peer/bundles.h"

namespace hocket::engines::peer {

namespace reduce_packets_detail {

// The bundles that a thread sends from one place of all parts. Where all parts are one array, that
// is one bundle.
template <int kPeers>
struct Outgoing {
  Bundle bundle[kPeers];
};

// One thread's place in a round.
struct Place {
  std::uint32_t round, group, lane;

  HOCKET_ANYWHERE Place(std::uint32_t r, std::uint32_t i)
      : round(r), group(i / kLanesOfGroup), lane(i % kLanesOfGroup) {}
  HOCKET_ANYWHERE std::uint32_t rows(const Part& part, int channel) const {
    return rows_of(strip_of(part, channel, round), group, lane);
  }
  HOCKET_ANYWHERE std::uint32_t vector(const Part& part, int channel) const {
    return strip_of(part, channel, round).first + group * kVectorsOfGroup + lane;
  }
  HOCKET_ANYWHERE std::uint32_t packet() const { return group * kPacketsOfGroup + lane; }
};

template <int kPeers, typename Machine>
HOCKET_ANYWHERE Outgoing<kPeers> load_outgoing(const Block<Machine>& block, const Place& place) {
  const Params& p = block.p;
  Outgoing<kPeers> out;
  HOCKET_UNROLL
  for (int j = 0; j < kPeers; ++j) {
    if (j > 0 && p.same) continue;
    const int channel = block.m.channel();
    out.bundle[j] =
        load_bundle(p.send[j], place.vector(p.send[j], channel), place.rows(p.send[j], channel));
  }
  return out;
}

template <int kPeers, typename Machine>
HOCKET_ANYWHERE void send_outgoing(Block<Machine>& block,
                                   const Place& place,
                                   const Outgoing<kPeers>& out) {
  Machine& m = block.m;
  const Params& p = block.p;
  HOCKET_UNROLL
  for (int j = 0; j < kPeers; ++j) {
    const std::uint32_t rows = place.rows(p.send[j], m.channel());
    if (rows == 0) continue;
    const std::uint64_t step = m.shared().sent[j];
    Packet* slot = block.packets_to(j, step) + place.packet();
    send_bundle(m, slot, rows, flag_of(step), p.same ? out.bundle[0] : out.bundle[j]);
  }
}

// What a thread has of this rank's part at one place: its rows, and the sum of all ranks' there.
struct Folded {
  Bundle bundle;
  std::uint32_t rows = 0;
  std::uint32_t vector = 0;
};
// False: given up.
template <int kPeers, typename Fold, typename Machine>
HOCKET_ANYWHERE bool fold_place(Block<Machine>& block, const Place& place, Folded& folded) {
  const Params& p = block.p;
  const std::uint32_t rows = place.rows(p.kept, block.m.channel());
  folded.rows = rows;
  folded.vector = place.vector(p.kept, block.m.channel());
  if (rows == 0) return true;
  const Bundle own = load_bundle(p.kept, folded.vector, rows);
  PackedBundle packed[kPeers];
  const auto all = [&](int j) { return j < static_cast<int>(p.peers) ? rows : 0; };
  if (!collect<kPeers>(block, place.packet(), 0, all, packed)) return false;
  folded.bundle = fold_bundles<kPeers, Fold>(p, packed, own, rows);
  return true;
}

}  // namespace reduce_packets_detail

// One hop. Blocks of whole warps; every thread stays at its places, so that kept_to may be `send`.
template <int kPeers, typename Fold, typename Machine>
HOCKET_ANYWHERE void reduce_packets(Machine& machine) {
  using namespace reduce_packets_detail;
  Block<Machine> block(machine);
  Machine& m = machine;
  const Params& p = block.p;
  const std::uint32_t bundles = p.groups * kLanesOfGroup;
  const auto first = static_cast<std::uint32_t>(m.thread());
  const auto threads = static_cast<std::uint32_t>(m.threads());
  for (std::uint32_t round = 0; round < p.rounds; ++round) {
    const auto sends = [&](int j) { return strip_of(p.send[j], m.channel(), round).count > 0; };
    const bool keeps = strip_of(p.kept, m.channel(), round).count > 0;
    // The first bundles are under way while the counters come.
    Outgoing<kPeers> outgoing = load_outgoing<kPeers>(block, Place(round, first));
    if (round == 0) block.open();
    block.reserve(kPacketSlots, 0, sends);
    if (!block.meet()) return;
    for (std::uint32_t i = first; i < bundles; i += threads) {
      if (i != first) outgoing = load_outgoing<kPeers>(block, Place(round, i));
      send_outgoing(block, Place(round, i), outgoing);
    }
    for (std::uint32_t i = first; keeps && i < bundles; i += threads) {
      Folded folded;
      if (!fold_place<kPeers, Fold>(block, Place(round, i), folded)) break;
      if (folded.rows > 0) store_bundle(p.kept_to, folded.vector, folded.rows, folded.bundle);
    }
    if (!block.meet()) return;
    block.give_back_packets(round + 1 == p.rounds, 1, [&](int) { return keeps; });
    block.count_sent(1, sends);
  }
  block.save();
}

// Two hops, for all_reduce. In each round every link carries two steps, if with nothing in them.
template <int kPeers, typename Fold, typename Machine>
HOCKET_ANYWHERE void all_reduce_packets(Machine& machine) {
  using namespace reduce_packets_detail;
  Block<Machine> block(machine);
  Machine& m = machine;
  const Params& p = block.p;
  const std::uint32_t bundles = p.groups * kLanesOfGroup;
  const auto first = static_cast<std::uint32_t>(m.thread());
  const auto threads = static_cast<std::uint32_t>(m.threads());
  const auto everybody = [](int) { return true; };
  for (std::uint32_t round = 0; round < p.rounds; ++round) {
    Outgoing<kPeers> outgoing = load_outgoing<kPeers>(block, Place(round, first));
    if (round == 0) block.open();
    block.reserve(kPacketSlots, 1, everybody);
    if (!block.meet()) return;
    for (std::uint32_t i = first; i < bundles; i += threads) {
      if (i != first) outgoing = load_outgoing<kPeers>(block, Place(round, i));
      send_outgoing(block, Place(round, i), outgoing);
    }
    for (std::uint32_t i = first; i < bundles; i += threads) {
      const Place place(round, i);
      Folded folded;
      if (!fold_place<kPeers, Fold>(block, place, folded)) break;
      if (folded.rows == 0) continue;
      HOCKET_UNROLL
      for (int j = 0; j < kPeers; ++j) {
        if (j >= static_cast<int>(p.peers)) continue;
        const std::uint64_t step = m.shared().sent[j] + 1;
        Packet* slot = block.packets_to(j, step) + place.packet();
        send_bundle(m, slot, folded.rows, flag_of(step), folded.bundle);
      }
      store_bundle(p.kept_to, folded.vector, folded.rows, folded.bundle);
    }
    for (std::uint32_t i = first; i < bundles && !block.failed; i += threads) {
      const Place place(round, i);
      const auto rows = [&](int j) { return place.rows(p.receive[j], m.channel()); };
      PackedBundle packed[kPeers];
      if (!collect<kPeers>(block, place.packet(), 1, rows, packed)) break;
      HOCKET_UNROLL
      for (int j = 0; j < kPeers; ++j) {
        if (rows(j) == 0) continue;
        const std::uint32_t vector = place.vector(p.receive[j], m.channel());
        store_bundle(p.receive[j], vector, rows(j), unpacked(packed[j]));
      }
    }
    if (!block.meet()) return;
    block.give_back_packets(round + 1 == p.rounds, 2, everybody);
    block.count_sent(2, everybody);
  }
  block.save();
}

}  // namespace hocket::engines::peer
