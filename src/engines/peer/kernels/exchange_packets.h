// Movement of medium-sized arrays: every rank sends packets directly to the receivers' slots.
#pragma once

#include "engines/peer/kernels/bundles.h"

namespace hocket::engines::peer {

namespace exchange_packets_detail {

// One thread's bundle to or from one peer. A warp handles a group of one peer. It may be empty.
struct ThreadPart {
  int peer = 0;
  std::uint32_t offset = 0;  // position of the bundle's first packet in the slot
  GroupLane lane{};
  Strip group;
};

// Returns bundle `i` of a round. Bundles are numbered by peer, then by group, then by lane.
template <typename Machine>
HOCKET_ANYWHERE ThreadPart place_of(const Block<Machine>& block,
                                    const CutArray (&parts)[kMaxPeers],
                                    std::uint32_t round,
                                    std::uint32_t i) {
  const Params& p = block.p;
  const std::uint32_t lane = i % kLanesOfGroup;
  const std::uint32_t group = i / kLanesOfGroup % p.groups;
  // Each rank starts with the next rank, so that the ranks do not all write to the same peer.
  std::uint32_t peer = i / kLanesOfGroup / p.groups + p.rank;
  if (peer >= p.peers) peer -= p.peers;
  return {static_cast<int>(peer),
          group * kPacketsOfGroup + lane,
          GroupLane{lane},
          group_of(strip_of(parts[peer], block.m.channel(), round), group)};
}

// Copies the part that this rank keeps, with all blocks of the launch.
template <typename Machine>
HOCKET_ANYWHERE void copy_kept(const Block<Machine>& block) {
  const CutArray& from = block.p.kept;
  const CutArray& to = block.p.kept_to;
  const auto threads = static_cast<std::uint64_t>(block.m.threads());
  const std::uint64_t vectors = vectors_in(to.bytes);
  auto i = static_cast<std::uint64_t>(block.m.channel()) * threads +
           static_cast<std::uint64_t>(block.m.thread());
  for (; i < vectors; i += threads * static_cast<std::uint64_t>(block.m.channels())) {
    store_vector(to.at, to.bytes, i, load_vector(from.at, from.bytes, i));
  }
}

}  // namespace exchange_packets_detail

// Blocks consist of whole warps. The thread that sends the data at a position also receives the
// data for it. So `send` and `receive` of a peer may be the same array.
template <typename Machine>
HOCKET_ANYWHERE void exchange_packets(Machine& machine) {
  using namespace exchange_packets_detail;
  Block<Machine> block(machine);
  Machine& m = machine;
  const Params& p = block.p;
  const std::uint32_t bundles = p.groups * kLanesOfGroup * p.peers;
  const std::uint32_t first = m.first_lane();
  ThreadPart place = first < bundles ? place_of(block, p.send, 0, first) : ThreadPart{};
  m.work_out(place.offset, place.group.first, place.group.count);
  m.await_previous();
  for (std::uint32_t round = 0; round < p.rounds; ++round) {
    const auto sends = [&](int j) { return strip_of(p.send[j], m.channel(), round).count > 0; };
    const auto gets = [&](int j) { return strip_of(p.receive[j], m.channel(), round).count > 0; };
    // Load the first bundle while the loads of the counters are in flight.
    if (round > 0 && first < bundles) place = place_of(block, p.send, round, first);
    Bundle bundle = load_bundle(p.send[place.peer], place.group, place.lane);
    if (round == 0) block.open();
    block.reserve(kPacketSlots, 0, sends);
    if (!block.meet()) return;
    for (std::uint32_t i = first; i < bundles; i = m.next_lane(i)) {
      if (i != first) {
        place = place_of(block, p.send, round, i);
        bundle = load_bundle(p.send[place.peer], place.group, place.lane);
      }
      if (place.group.count == 0) continue;
      const std::uint64_t step = m.shared().sent[place.peer];
      Packet* slot = block.packets_to(place.peer, step) + place.offset;
      send_bundle(m, slot, place.group.count, place.lane, flag_of(step), bundle);
    }
    if (round == 0) copy_kept(block);
    for (std::uint32_t i = first; i < bundles && !block.failed; i = m.next_lane(i)) {
      place = place_of(block, p.receive, round, i);
      if (place.group.count == 0) continue;
      PackedBundle packed;
      if (!collect_one(block, place.peer, place.offset, place.lane, place.group.count, packed)) {
        break;
      }
      const Bundle come = unpacked(packed, place.lane);
      store_bundle(p.receive[place.peer], place.group, place.lane, come);
    }
    if (!block.meet()) return;
    if (round + 1 == p.rounds) m.let_next_begin();
    block.give_back_packets(round + 1 == p.rounds, 1, gets);
    block.count_sent(1, sends);
  }
  block.save();
}

}  // namespace hocket::engines::peer
