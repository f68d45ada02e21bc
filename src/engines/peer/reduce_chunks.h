// Reductions of large arrays, cut into parts: every rank sends its chunks of a part to the rank
// that reduces it, which forwards the result to those who want it. With one source, and relays
// instead of sums, it is the broadcast of a large array.
#pragma once

#include "engines/peer/chunks.h"
#include "engines/peer/exchange_chunks.h"

namespace hocket::engines::peer {

namespace reduce_chunks_detail {

// Vector `i` of a chunk, of all sources, folded, for `kBatch` places at once, to have many loads
// under way.
template <int kMost, int kBatch, typename Fold, typename Machine>
HOCKET_ANYWHERE void fold_places(Block<Machine>& block,
                                 const std::byte* const (&from)[kMost],
                                 Stretch kept,
                                 std::uint32_t i) {
  Machine& m = block.m;
  const Params& p = block.p;
  const auto stride = static_cast<std::uint32_t>(m.threads());
  Vector v[kBatch][kMost];
  HOCKET_UNROLL
  for (std::uint32_t b = 0; b < kBatch; ++b) {
    const std::uint32_t place = i + b * stride;
    HOCKET_UNROLL
    for (int s = 0; s < kMost; ++s) {
      if (s >= p.source_count) {
        v[b][s] = Vector{};
        continue;
      }
      v[b][s] = p.sources[s] == p.rank
                    ? load_vector(from[s], kept.bytes, place)
                    : m.load_staged(from[s] + std::uint64_t{place} * kVectorBytes);
    }
  }
  HOCKET_UNROLL
  for (std::uint32_t b = 0; b < kBatch; ++b) {
    const std::uint32_t place = i + b * stride;
    const Vector result = Fold::apply(p.fold, v[b], p.source_count);
    if (p.out != nullptr) store_vector(p.out + kept.first, kept.bytes, place, result);
    exchange_chunks_detail::for_peers(block, [&](int q) {
      if ((p.forward >> q & 1) == 0) return;
      if (p.enter) return store_vector(p.direct[q] + kept.first, kept.bytes, place, result);
      std::byte* slot = block.chunk(q, p.rank, m.shared().sent[q]);
      m.store_staged(slot + std::uint64_t{place} * kVectorBytes, result);
    });
  }
}

// This rank's chunk, from its array and the slots of the others.
template <int kMost, typename Fold, typename Machine>
HOCKET_ANYWHERE void fold_chunk(Block<Machine>& block, Stretch kept) {
  Machine& m = block.m;
  const Params& p = block.p;
  const std::byte* from[kMost] = {};
  HOCKET_UNROLL
  for (int s = 0; s < kMost; ++s) {
    if (s >= p.source_count) continue;
    const int q = p.sources[s];
    from[s] =
        q == p.rank ? p.send[q].at + kept.first : block.chunk(p.rank, q, m.shared().received[q]);
  }
  constexpr int kBatch = kMost > 4 ? 1 : kMost > 2 ? 2 : 4;
  const auto vectors = static_cast<std::uint32_t>(vectors_in(kept.bytes));
  const auto threads = static_cast<std::uint32_t>(m.threads());
  auto i = static_cast<std::uint32_t>(m.thread());
  for (; i + (kBatch - 1) * threads < vectors; i += kBatch * threads) {
    fold_places<kMost, kBatch, Fold>(block, from, kept, i);
  }
  for (; i < vectors; i += threads) fold_places<kMost, 1, Fold>(block, from, kept, i);
}

}  // namespace reduce_chunks_detail

// A pipeline of three stages, each a round behind the one before: send, reduce and forward, collect
// results. Both ends of a link take its steps in the same order: in each turn a chunk to be
// reduced, then a result of the round before.
template <int kMost, typename Fold, typename Machine>
HOCKET_ANYWHERE void reduce_chunks(Machine& machine) {
  Block<Machine> block(machine);
  Machine& m = machine;
  const Params& p = block.p;
  const auto is_source = [&](int q) {
    for (int s = 0; s < p.source_count; ++s) {
      if (p.sources[s] == q) return true;
    }
    return false;
  };
  block.open();
  if (p.enter) {
    block.open_arrays([&](int q) { return stretch_of(p.receive[q], m.channel(), 0).bytes > 0; });
    block.enter_arrays([&](int q) {
      return (p.forward >> q & 1) != 0 && stretch_of(p.send[p.rank], m.channel(), 0).bytes > 0;
    });
  }
  for (std::uint32_t turn = 0; turn < p.rounds + 2; ++turn) {
    const auto sends = [&](int q) { return stretch_of(p.send[q], m.channel(), turn).bytes > 0; };
    block.reserve(0, sends);
    if (!block.meet()) return;
    exchange_chunks_detail::for_peers(block, [&](int q) {
      const Stretch stretch = stretch_of(p.send[q], m.channel(), turn);
      if (stretch.bytes == 0) return;
      put_chunk(m, block.chunk(q, p.rank, m.shared().sent[q]), p.send[q], stretch);
    });
    if (!block.meet()) return;
    block.announce(sends);

    Stretch kept;
    if (turn > 0) kept = stretch_of(p.send[p.rank], m.channel(), turn - 1);
    const auto gives = [&](int q) { return kept.bytes > 0 && is_source(q); };
    const auto wants = [&](int q) { return kept.bytes > 0 && (p.forward >> q & 1) != 0; };
    block.await(gives);
    block.reserve(0, wants);
    if (!block.meet()) return;
    if (kept.bytes > 0) reduce_chunks_detail::fold_chunk<kMost, Fold>(block, kept);
    if (!block.meet()) return;
    block.give_back(gives);
    block.announce(wants);

    const auto gets = [&](int q) {
      return turn > 1 && stretch_of(p.receive[q], m.channel(), turn - 2).bytes > 0;
    };
    block.await(gets);
    if (!block.meet()) return;
    if (turn < 2) continue;
    if (!p.enter) {
      exchange_chunks_detail::for_peers(block, [&](int q) {
        const Stretch stretch = stretch_of(p.receive[q], m.channel(), turn - 2);
        if (stretch.bytes == 0) return;
        take_chunk(m, p.receive[q], stretch, block.chunk(p.rank, q, m.shared().received[q]));
      });
      if (!block.meet()) return;
    }
    block.give_back(gets);
  }
  block.save();
}

}  // namespace hocket::engines::peer
