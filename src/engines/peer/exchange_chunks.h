// Movement of large arrays: chunks through the receivers' staging, or straight into their arrays
// where those are symmetric.
#pragma once

#include "engines/peer/chunks.h"

namespace hocket::engines::peer {

namespace exchange_chunks_detail {

// Calls act(q) for each peer, beginning with the right neighbour, so that ranks do not all turn to
// the same one.
template <typename Machine, typename Act>
HOCKET_ANYWHERE void for_peers(const Block<Machine>& block, const Act& act) {
  for (int i = 1; i < block.p.size; ++i) {
    int q = block.p.rank + i;
    if (q >= block.p.size) q -= block.p.size;
    act(q);
  }
}

template <typename Machine>
HOCKET_ANYWHERE void copy_own(Block<Machine>& block, std::uint32_t round) {
  const Part& from = block.p.send[block.p.rank];
  const Part& to = block.p.receive[block.p.rank];
  if (from.at == to.at) return;
  const Stretch stretch = stretch_of(to, block.m.channel(), round);
  copy_chunk(block.m, to.at + stretch.first, from.at + stretch.first, stretch.bytes);
}

// The same data to every peer is read once.
template <typename Machine>
HOCKET_ANYWHERE void put_same(Block<Machine>& block, std::uint32_t round) {
  Machine& m = block.m;
  const Params& p = block.p;
  const int first = p.rank == 0 ? 1 : 0;
  const Stretch stretch = stretch_of(p.send[first], m.channel(), round);
  const std::byte* from = p.send[first].at + stretch.first;
  for_vectors(
      m,
      stretch.bytes,
      [&](std::uint32_t i) { return load_vector(from, stretch.bytes, i); },
      [&](std::uint32_t i, const Vector& v) {
        for_peers(block, [&](int q) {
          std::byte* slot = block.chunk(q, p.rank, m.shared().sent[q]);
          m.store_staged(slot + std::uint64_t{i} * kVectorBytes, v);
        });
      });
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
    const auto sends = [&](int q) { return stretch_of(p.send[q], m.channel(), round).bytes > 0; };
    const auto gets = [&](int q) {
      return round > 0 && stretch_of(p.receive[q], m.channel(), round - 1).bytes > 0;
    };
    block.reserve(0, sends);
    if (!block.meet()) return;
    if (p.same) {
      put_same(block, round);
    } else {
      for_peers(block, [&](int q) {
        const Stretch stretch = stretch_of(p.send[q], m.channel(), round);
        if (stretch.bytes == 0) return;
        put_chunk(m, block.chunk(q, p.rank, m.shared().sent[q]), p.send[q], stretch);
      });
    }
    if (!block.meet()) return;
    block.announce(sends);
    copy_own(block, round);
    block.await(gets);
    if (!block.meet()) return;
    if (round == 0) continue;
    for_peers(block, [&](int q) {
      const Stretch stretch = stretch_of(p.receive[q], m.channel(), round - 1);
      if (stretch.bytes == 0) return;
      take_chunk(m, p.receive[q], stretch, block.chunk(p.rank, q, m.shared().received[q]));
    });
    if (!block.meet()) return;
    block.give_back(gets);
  }
  block.save();
}

// Straight into the peers' arrays, direct[q], of whole channels at once; one step a link, which has
// no slot.
template <typename Machine>
HOCKET_ANYWHERE void exchange_direct(Machine& machine) {
  using namespace exchange_chunks_detail;
  Block<Machine> block(machine);
  Machine& m = machine;
  const Params& p = block.p;
  const auto sends = [&](int q) { return stretch_of(p.send[q], m.channel(), 0).bytes > 0; };
  const auto gets = [&](int q) { return stretch_of(p.receive[q], m.channel(), 0).bytes > 0; };
  block.open();
  block.open_arrays(gets);
  block.reserve(0, sends);
  block.enter_arrays(sends);
  if (!block.meet()) return;
  for (std::uint32_t round = 0; round < p.rounds; ++round) {
    for_peers(block, [&](int q) {
      const Stretch stretch = stretch_of(p.send[q], m.channel(), round);
      copy_chunk(m, p.direct[q] + stretch.first, p.send[q].at + stretch.first, stretch.bytes);
    });
  }
  if (!block.meet()) return;
  block.announce(sends);
  for (std::uint32_t round = 0; round < p.rounds; ++round) copy_own(block, round);
  block.await(gets);
  if (!block.meet()) return;
  block.give_back(gets);
  block.save();
}

}  // namespace hocket::engines::peer
