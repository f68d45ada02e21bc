// Movement of large arrays: chunks through the receivers' staging, or straight into their arrays
// where those are symmetric.
#pragma once

#include "engines/peer/chunks.h"

namespace hocket::engines::peer {

namespace exchange_chunks_detail {

// Calls act(j) for each peer, beginning with the right neighbour, so that ranks do not all turn to
// the same one.
template <typename Machine, typename Act>
HOCKET_ANYWHERE void for_peers(const Block<Machine>& block, const Act& act) {
  const auto peers = static_cast<int>(block.p.peers);
  HOCKET_KEEP_LOOP
  for (int i = 0; i < peers; ++i) {
    const int j = static_cast<int>(block.p.rank) + i;
    act(j < peers ? j : j - peers);
  }
}

template <typename Machine>
HOCKET_ANYWHERE void copy_kept(Block<Machine>& block, std::uint32_t round) {
  const Part& from = block.p.kept;
  const Part& to = block.p.kept_to;
  const Stretch stretch = stretch_of(to, block.m.channel(), round);
  if (stretch.bytes == 0) return;
  copy_chunk(block.m, to.at + stretch.first, from.at + stretch.first, stretch.bytes);
}

// The same data to every peer is read once.
template <typename Machine>
HOCKET_ANYWHERE void put_same(Block<Machine>& block, std::uint32_t round) {
  Machine& m = block.m;
  const Params& p = block.p;
  const Stretch stretch = stretch_of(p.send[0], m.channel(), round);
  if (stretch.bytes == 0) return;
  const std::byte* from = p.send[0].at + stretch.first;
  std::byte* to[kMaxPeers] = {};
  HOCKET_UNROLL
  for (int i = 0; i < kMaxPeers; ++i) {
    const int j = static_cast<int>(p.rank) + i;
    const auto peers = static_cast<int>(p.peers);
    if (i < peers) to[i] = block.chunk_to(j < peers ? j : j - peers);
  }
  const auto store = [&](std::uint32_t at, const Vector& v) {
    HOCKET_UNROLL
    for (int i = 0; i < kMaxPeers; ++i) {
      if (to[i] != nullptr) m.store_staged(to[i] + std::uint64_t{at} * kVectorBytes, v);
    }
  };
  const bool plain = is_plain(from, stretch.bytes);
  const auto load = [&](std::uint32_t i) {
    return plain ? load_aligned<Vector>(from + std::uint64_t{i} * kVectorBytes)
                 : load_vector(from, stretch.bytes, i);
  };
  for_vectors(m, stretch.bytes, load, store);
}

}  // namespace exchange_chunks_detail

// Sending runs one round ahead of receiving.
template <typename Machine>
HOCKET_ANYWHERE void exchange_chunks(Machine& machine) {
  using namespace exchange_chunks_detail;
  Block<Machine> block(machine);
  Machine& m = machine;
  const Params& p = block.p;
  block.open();
  for (std::uint32_t round = 0; round < p.rounds + 1; ++round) {
    const auto sends = [&](int j) { return stretch_of(p.send[j], m.channel(), round).bytes > 0; };
    const auto gets = [&](int j) {
      return round > 0 && stretch_of(p.receive[j], m.channel(), round - 1).bytes > 0;
    };
    block.reserve(p.slots(), 0, sends);
    if (!block.meet()) return;
    if (p.same) {
      put_same(block, round);
    } else {
      for_peers(block, [&](int j) {
        const Stretch stretch = stretch_of(p.send[j], m.channel(), round);
        if (stretch.bytes > 0) put_chunk(m, block.chunk_to(j), p.send[j], stretch);
      });
    }
    if (!block.meet()) return;
    block.announce(sends);
    copy_kept(block, round);
    block.await(gets);
    if (!block.meet()) return;
    if (round == 0) continue;
    for_peers(block, [&](int j) {
      const Stretch stretch = stretch_of(p.receive[j], m.channel(), round - 1);
      if (stretch.bytes > 0) take_chunk(m, p.receive[j], stretch, block.chunk_from(j));
    });
    if (!block.meet()) return;
    block.give_back(round == p.rounds, gets);
  }
  block.save();
}

// Straight into the peers' arrays, direct[j], of whole channels at once; one step a link, which has
// no slot.
template <typename Machine>
HOCKET_ANYWHERE void exchange_direct(Machine& machine) {
  using namespace exchange_chunks_detail;
  Block<Machine> block(machine);
  Machine& m = machine;
  const Params& p = block.p;
  const auto sends = [&](int j) { return stretch_of(p.send[j], m.channel(), 0).bytes > 0; };
  const auto gets = [&](int j) { return stretch_of(p.receive[j], m.channel(), 0).bytes > 0; };
  block.open();
  block.open_arrays(gets);
  block.reserve(p.slots(), 0, sends);
  block.enter_arrays(sends);
  if (!block.meet()) return;
  for (std::uint32_t round = 0; round < p.rounds; ++round) {
    for_peers(block, [&](int j) {
      const Stretch stretch = stretch_of(p.send[j], m.channel(), round);
      if (stretch.bytes == 0) return;
      copy_chunk(m, p.direct[j] + stretch.first, p.send[j].at + stretch.first, stretch.bytes);
    });
  }
  if (!block.meet()) return;
  block.announce(sends);
  for (std::uint32_t round = 0; round < p.rounds; ++round) copy_kept(block, round);
  block.await(gets);
  if (!block.meet()) return;
  block.give_back(true, gets);
  block.save();
}

}  // namespace hocket::engines::peer
