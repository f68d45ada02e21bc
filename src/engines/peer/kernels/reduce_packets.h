// Reductions of medium-sized arrays by packets. In one hop, every rank sends its data to the ranks
// that reduce it. In two hops, each rank reduces one part, and then sends its result to all ranks.
#pragma once

#include "engines/peer/kernels/bundles.h"

namespace hocket::engines::peer {

namespace reduce_packets_detail {

// The bundles that a thread sends to all peers, from the same position in each part. If all peers
// get the same array, only the first bundle is used.
template <int kPeers>
struct Outgoing {
  Bundle bundle[kPeers];
};

// One thread's position in a round: a lane of a group.
struct ThreadPart {
  std::uint32_t round, number;
  GroupLane lane;

  HOCKET_ANYWHERE ThreadPart(std::uint32_t r, std::uint32_t i)
      : round(r), number(i / kLanesOfGroup), lane{i % kLanesOfGroup} {}
  HOCKET_ANYWHERE Strip group(const CutArray& part, int channel) const {
    return group_of(strip_of(part, channel, round), number);
  }
  HOCKET_ANYWHERE std::uint32_t packet() const { return number * kPacketsOfGroup + lane.number; }
};

template <int kPeers, typename Machine>
HOCKET_ANYWHERE Outgoing<kPeers> load_outgoing(const Block<Machine>& block,
                                               const ThreadPart& place) {
  const Params& p = block.p;
  Outgoing<kPeers> out;
  HOCKET_UNROLL
  for (int j = 0; j < kPeers; ++j) {
    if (j > 0 && p.same) continue;
    const Strip group = place.group(p.send[j], block.m.channel());
    out.bundle[j] = load_bundle(p.send[j], group, place.lane);
  }
  return out;
}

template <int kPeers, typename Machine>
HOCKET_ANYWHERE void send_outgoing(Block<Machine>& block,
                                   const ThreadPart& place,
                                   const Outgoing<kPeers>& out) {
  Machine& m = block.m;
  const Params& p = block.p;
  HOCKET_UNROLL
  for (int j = 0; j < kPeers; ++j) {
    const std::uint32_t count = place.group(p.send[j], m.channel()).count;
    if (count == 0) continue;
    const std::uint64_t step = m.shared().sent[j];
    Packet* slot = block.packets_to(j, step) + place.packet();
    const Bundle& bundle = p.same ? out.bundle[0] : out.bundle[j];
    send_bundle(m, slot, count, place.lane, flag_of(step), bundle);
  }
}

// One thread's result at one position of this rank's part: the combined vectors of all ranks.
struct Folded {
  Bundle bundle;
  Strip group;
};
// Waits for the peers' bundles at a position and combines them with this rank's data. Returns false
// if the thread gave up.
template <int kPeers, typename Fold, typename Machine>
HOCKET_ANYWHERE bool fold_place(Block<Machine>& block, const ThreadPart& place, Folded& folded) {
  const Params& p = block.p;
  folded.group = place.group(p.kept, block.m.channel());
  const std::uint32_t count = folded.group.count;
  if (count == 0) return true;
  const Bundle own = load_bundle(p.kept, folded.group, place.lane);
  PackedBundle packed[kPeers];
  const auto all = [&](int j) { return j < static_cast<int>(p.peers) ? count : 0; };
  if (!collect<kPeers>(block, place.packet(), place.lane, 0, all, packed)) return false;
  folded.bundle = fold_bundles<kPeers, Fold>(p, packed, own, count, place.lane);
  return true;
}

}  // namespace reduce_packets_detail

// Reduces in one hop. Blocks consist of whole warps. The thread that sends the data at a position
// also writes the result for it, so `kept_to` may be the same array as `send`.
template <int kPeers, typename Fold, typename Machine>
HOCKET_ANYWHERE void reduce_packets(Machine& machine) {
  using namespace reduce_packets_detail;
  Block<Machine> block(machine);
  Machine& m = machine;
  m.await_previous();
  const Params& p = block.p;
  const std::uint32_t bundles = p.groups * kLanesOfGroup;
  const std::uint32_t first = m.first_lane();
  for (std::uint32_t round = 0; round < p.rounds; ++round) {
    const auto sends = [&](int j) { return strip_of(p.send[j], m.channel(), round).count > 0; };
    const bool keeps = strip_of(p.kept, m.channel(), round).count > 0;
    // Load the first bundles while the loads of the counters are in flight.
    Outgoing<kPeers> outgoing = load_outgoing<kPeers>(block, ThreadPart(round, first));
    if (round == 0) block.open();
    block.reserve(kPacketSlots, 0, sends);
    if (!block.meet()) return;
    for (std::uint32_t i = first; i < bundles; i = m.next_lane(i)) {
      if (i != first) outgoing = load_outgoing<kPeers>(block, ThreadPart(round, i));
      send_outgoing(block, ThreadPart(round, i), outgoing);
    }
    for (std::uint32_t i = first; keeps && i < bundles; i = m.next_lane(i)) {
      const ThreadPart place(round, i);
      Folded folded;
      if (!fold_place<kPeers, Fold>(block, place, folded)) break;
      if (folded.group.count > 0) store_bundle(p.kept_to, folded.group, place.lane, folded.bundle);
    }
    if (!block.meet()) return;
    if (round + 1 == p.rounds) m.let_next_begin();
    block.give_back_packets(round + 1 == p.rounds, 1, [&](int) { return keeps; });
    block.count_sent(1, sends);
  }
  block.save();
}

// Reduces in two hops, for all_reduce. In each round every link carries two steps: inputs in the
// first step, results in the second. A step may be empty.
template <int kPeers, typename Fold, typename Machine>
HOCKET_ANYWHERE void all_reduce_packets(Machine& machine) {
  using namespace reduce_packets_detail;
  Block<Machine> block(machine);
  Machine& m = machine;
  m.await_previous();
  const Params& p = block.p;
  const std::uint32_t bundles = p.groups * kLanesOfGroup;
  const std::uint32_t first = m.first_lane();
  const auto everybody = [](int) { return true; };
  for (std::uint32_t round = 0; round < p.rounds; ++round) {
    Outgoing<kPeers> outgoing = load_outgoing<kPeers>(block, ThreadPart(round, first));
    if (round == 0) block.open();
    block.reserve(kPacketSlots, 1, everybody);
    if (!block.meet()) return;
    for (std::uint32_t i = first; i < bundles; i = m.next_lane(i)) {
      if (i != first) outgoing = load_outgoing<kPeers>(block, ThreadPart(round, i));
      send_outgoing(block, ThreadPart(round, i), outgoing);
    }
    for (std::uint32_t i = first; i < bundles; i = m.next_lane(i)) {
      const ThreadPart place(round, i);
      Folded folded;
      if (!fold_place<kPeers, Fold>(block, place, folded)) break;
      if (folded.group.count == 0) continue;
      HOCKET_UNROLL
      for (int j = 0; j < kPeers; ++j) {
        if (j >= static_cast<int>(p.peers)) continue;
        const std::uint64_t step = m.shared().sent[j] + 1;
        Packet* slot = block.packets_to(j, step) + place.packet();
        send_bundle(m, slot, folded.group.count, place.lane, flag_of(step), folded.bundle);
      }
      store_bundle(p.kept_to, folded.group, place.lane, folded.bundle);
    }
    for (std::uint32_t i = first; i < bundles && !block.failed; i = m.next_lane(i)) {
      const ThreadPart place(round, i);
      const auto group = [&](int j) { return place.group(p.receive[j], m.channel()); };
      const auto count = [&](int j) { return group(j).count; };
      PackedBundle packed[kPeers];
      if (!collect<kPeers>(block, place.packet(), place.lane, 1, count, packed)) break;
      HOCKET_UNROLL
      for (int j = 0; j < kPeers; ++j) {
        if (count(j) == 0) continue;
        store_bundle(p.receive[j], group(j), place.lane, unpacked(packed[j], place.lane));
      }
    }
    if (!block.meet()) return;
    if (round + 1 == p.rounds) m.let_next_begin();
    block.give_back_packets(round + 1 == p.rounds, 2, everybody);
    block.count_sent(2, everybody);
  }
  block.save();
}

}  // namespace hocket::engines::peer
