// all_reduce in two hops and reduce_scatter in one hop, for arrays that consist of whole, aligned
// vectors in equal parts. A rank sends the same packets in the same slots as in reduce_packets.h.
// So some ranks may use this code while others use the code there. Equal parts need fewer
// instructions in each thread. The instructions take most of the time of such a call.
#pragma once

#include "engines/peer/kernels/bundles.h"

namespace hocket::engines::peer {

namespace reduce_even_detail {

// One thread's position in every part: a lane of a group.
struct ThreadPart {
  GroupLane lane;
  std::uint32_t first;   // first vector of the group, within a part
  std::uint32_t packet;  // the lane's first packet in a slot

  // Returns the number of vectors of the group in a part of `part` vectors.
  HOCKET_ANYWHERE std::uint32_t count(std::uint32_t part) const {
    if (first >= part) return 0;
    return part - first < kVectorsOfGroup ? part - first : kVectorsOfGroup;
  }
};

HOCKET_ANYWHERE Bundle load(const std::byte* from, GroupLane lane, std::uint32_t count) {
  Bundle bundle;
  HOCKET_UNROLL
  for (std::uint32_t r = 0; r < kRows; ++r) {
    bundle.row[r] = Vector{};
    if (!lane.has(r, count)) continue;
    bundle.row[r] = load_aligned<Vector>(from + lane.vector(r) * kVectorBytes);
  }
  return bundle;
}
HOCKET_ANYWHERE void store(std::byte* to,
                           GroupLane lane,
                           std::uint32_t count,
                           const Bundle& bundle) {
  HOCKET_UNROLL
  for (std::uint32_t r = 0; r < kRows; ++r) {
    if (!lane.has(r, count)) continue;
    store_aligned(to + lane.vector(r) * kVectorBytes, bundle.row[r]);
  }
}

template <int kPeers, bool kToAll, typename Fold, typename Machine>
HOCKET_ANYWHERE void run(Machine& machine) {
  constexpr std::uint32_t kHops = kToAll ? 2 : 1;
  Block<Machine> block(machine);
  Machine& m = machine;
  const auto& p = block.p;
  const std::uint32_t first = m.first_lane();

  // Returns the address of the group at `place` in a rank's part of an array.
  const auto at = [&](std::byte* array, int rank, const ThreadPart& place) {
    return array +
           (std::uint64_t{p.part} * static_cast<unsigned>(rank) + place.first) * kVectorBytes;
  };
  // Calls act(peer, rank, count) for each peer. `count` is the vectors of the group at `place` in
  // the peer's part.
  const auto for_parts = [&](const ThreadPart& place, const auto& act) {
    HOCKET_UNROLL
    for (int j = 0; j < kPeers; ++j) {
      if (j >= static_cast<int>(p.peers)) continue;
      const int rank = rank_of_peer(j, p.rank);
      act(j, rank, place.count(p.part_of(rank)));
    }
  };
  // The addresses and lengths of the groups that go to the peers.
  struct Sources {
    std::byte* at[kPeers];
    std::uint32_t count[kPeers];
  };
  const auto sources_of = [&](const ThreadPart& place) {
    Sources sources{};
    for_parts(place, [&](int j, int rank, std::uint32_t count) {
      sources.at[j] = at(p.in, rank, place);
      sources.count[j] = count;
    });
    return sources;
  };
  const auto load_all = [&](const Sources& sources, GroupLane lane, Bundle(&out)[kPeers]) {
    HOCKET_UNROLL
    for (int j = 0; j < kPeers; ++j) out[j] = load(sources.at[j], lane, sources.count[j]);
  };
  const auto place_of = [&](std::uint32_t round, std::uint32_t i) {
    const std::uint32_t begin =
        static_cast<std::uint32_t>(m.channel()) * p.unit + round * kGroupsOfSlot;
    const std::uint32_t group = i / kLanesOfGroup, lane = i % kLanesOfGroup;
    return ThreadPart{
        GroupLane{lane}, (begin + group) * kVectorsOfGroup, group * kPacketsOfGroup + lane};
  };

  Sources sources = sources_of(place_of(0, first));
  HOCKET_UNROLL
  for (int j = 0; j < kPeers; ++j) m.work_out(sources.at[j], sources.count[j]);
  m.await_previous();
  const std::uint32_t rounds = p.rounds();
  for (std::uint32_t round = 0; round < rounds; ++round) {
    // In two hops, every link carries two steps in each round, even if they are empty.
    const bool carries = kToAll || place_of(round, 0).count(p.part) > 0;
    const auto everybody = [&](int) { return carries; };
    const std::uint32_t left = p.unit - round * kGroupsOfSlot;
    const std::uint32_t bundles = (left < kGroupsOfSlot ? left : kGroupsOfSlot) * kLanesOfGroup;
    // Load the first bundles while the loads of the counters are in flight.
    Bundle out[kPeers];
    if (round > 0) sources = sources_of(place_of(round, first));
    if (first < bundles) load_all(sources, GroupLane{first % kLanesOfGroup}, out);
    if (round == 0) block.open();
    block.reserve(kPacketSlots, kHops - 1, everybody);
    if (!block.meet()) return;
    for (std::uint32_t i = first; i < bundles; i = m.next_lane(i)) {
      const ThreadPart place = place_of(round, i);
      if (i != first) load_all(sources_of(place), place.lane, out);
      for_parts(place, [&](int j, int, std::uint32_t count) {
        if (count == 0) return;
        const std::uint64_t step = m.shared().sent[j];
        Packet* slot = block.packets_to(j, step) + place.packet;
        send_bundle(m, slot, count, place.lane, flag_of(step), out[j]);
      });
    }
    for (std::uint32_t i = first; i < bundles; i = m.next_lane(i)) {
      const ThreadPart place = place_of(round, i);
      const std::uint32_t count = place.count(p.part_of(p.rank));
      if (count == 0) continue;
      const Bundle own = load(at(p.in, p.rank, place), place.lane, count);
      PackedBundle packed[kPeers];
      const auto all = [&](int j) { return j < static_cast<int>(p.peers) ? count : 0; };
      if (!collect<kPeers>(block, place.packet, place.lane, 0, all, packed)) break;
      const Bundle sum = fold_bundles<kPeers, Fold>(p, packed, own, count, place.lane);
      HOCKET_UNROLL
      for (int j = 0; j < kPeers; ++j) {
        if (!kToAll || j >= static_cast<int>(p.peers)) continue;
        const std::uint64_t step = m.shared().sent[j] + 1;
        Packet* slot = block.packets_to(j, step) + place.packet;
        send_bundle(m, slot, count, place.lane, flag_of(step), sum);
      }
      store(at(p.out, p.rank, place), place.lane, count, sum);
    }
    for (std::uint32_t i = first; kToAll && i < bundles && !block.failed; i = m.next_lane(i)) {
      const ThreadPart place = place_of(round, i);
      const auto counts = [&](int j) {
        return j < static_cast<int>(p.peers) ? place.count(p.part_of(rank_of_peer(j, p.rank))) : 0;
      };
      PackedBundle packed[kPeers];
      if (!collect<kPeers>(block, place.packet, place.lane, 1, counts, packed)) break;
      for_parts(place, [&](int j, int rank, std::uint32_t count) {
        store(at(p.out, rank, place), place.lane, count, unpacked(packed[j], place.lane));
      });
    }
    if (!block.meet()) return;
    if (round + 1 == rounds) m.let_next_begin();
    block.give_back_packets(round + 1 == rounds, kHops, everybody);
    block.count_sent(kHops, everybody);
  }
  block.save();
}

}  // namespace reduce_even_detail

// Blocks consist of whole warps. The thread that sends the data at a position also writes the
// result for it, so `in` and `out` may be the same array.
template <int kPeers, typename Fold, typename Machine>
HOCKET_ANYWHERE void reduce_even(Machine& machine) {
  if (machine.params().hops == 2) return reduce_even_detail::run<kPeers, true, Fold>(machine);
  reduce_even_detail::run<kPeers, false, Fold>(machine);
}

}  // namespace hocket::engines::peer
