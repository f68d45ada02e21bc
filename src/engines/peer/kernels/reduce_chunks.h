// Reductions of large arrays by chunks. The array is divided into parts, each of which one rank
// reduces. Every rank sends its chunks of a part to this rank, which forwards the result to the
// ranks that want it. With a single source, this is the broadcast of a large array by relays.
#pragma once

#include "engines/peer/kernels/chunks.h"

namespace hocket::engines::peer {

namespace reduce_chunks_detail {

// The sources and targets of a chunk to reduce.
template <int kPeers>
struct Route {
  const std::byte* from[kPeers + 1] = {};  // the sources, in rank order
  int sources = 0;
  int own = -1;                // index of this rank's array in `from`; -1: it is no source
  std::byte* out = nullptr;    // target in this rank's array; null: no target
  std::byte* to[kPeers] = {};  // targets in peers' slots or arrays; null: the peer gets no result
  std::uint32_t bytes = 0;
  bool plain = true;  // all sources and targets consist of whole, aligned vectors
};

template <int kPeers, typename Machine>
HOCKET_ANYWHERE Route<kPeers> route_of(const Block<Machine>& block, Stretch kept) {
  const Params& p = block.p;
  const Counters& shared = block.m.shared();
  Route<kPeers> route;
  route.bytes = kept.bytes;
  const std::byte* own = p.kept.at + kept.first;
  if (p.own_source) route.plain = is_plain(own, kept.bytes);
  // Collects the sources in rank order. The inner loop makes the index of `from` a constant, so
  // that the array stays in registers.
  HOCKET_UNROLL
  for (int q = 0; q <= kPeers; ++q) {
    const int rank = static_cast<int>(p.rank);
    const int j = q < rank ? q : q - 1;
    const std::byte* source = nullptr;
    if (q == rank && p.own_source) source = own;
    if (q != rank && j < static_cast<int>(p.peers)) source = shared.sources[j];
    if (source == nullptr) continue;
    if (q == rank) route.own = route.sources;
    HOCKET_UNROLL
    for (int s = 0; s <= kPeers; ++s) {
      if (s == route.sources) route.from[s] = source;
    }
    ++route.sources;
  }
  if (p.kept_to.bytes > 0) {
    route.out = p.kept_to.at + kept.first;
    route.plain = route.plain && is_plain(route.out, kept.bytes);
  }
  HOCKET_UNROLL
  for (int j = 0; j < kPeers; ++j) {
    if (j >= static_cast<int>(p.peers) || shared.targets[j] == nullptr) continue;
    route.to[j] = shared.targets[j];
    route.plain = route.plain && is_plain(route.to[j], kept.bytes);
  }
  return route;
}

// Reduces kBatch vectors of a chunk: `i`, i + threads(), i + 2 * threads() and so on, as far as
// they exist. The loads of all of them are in flight together.
template <bool kPlain, int kBatch, typename Fold, int kPeers, typename Machine>
HOCKET_ANYWHERE void fold_places(Block<Machine>& block,
                                 const Route<kPeers>& route,
                                 std::uint32_t i,
                                 std::uint32_t vectors) {
  Machine& m = block.m;
  const Params& p = block.p;
  const auto stride = static_cast<std::uint32_t>(m.threads());
  Vector v[kBatch][kPeers + 1];
  HOCKET_UNROLL
  for (std::uint32_t b = 0; b < kBatch; ++b) {
    const std::uint64_t place = i + b * stride;
    HOCKET_UNROLL
    for (int s = 0; s <= kPeers; ++s) {
      if (s >= route.sources || place >= vectors) {
        v[b][s] = Vector{};
      } else if (!kPlain && s == route.own) {
        v[b][s] = load_vector(route.from[s], route.bytes, place);
      } else {
        v[b][s] = m.load_staged(route.from[s] + place * kVectorBytes);
      }
    }
  }
  HOCKET_UNROLL
  for (std::uint32_t b = 0; b < kBatch; ++b) {
    const std::uint64_t place = i + b * stride;
    if (place >= vectors) continue;
    const Vector result = Fold::apply(p.fold, v[b], route.sources);
    const auto put = [&](std::byte* to) {
      if (kPlain) return m.store_staged(to + place * kVectorBytes, result);
      store_vector(to, route.bytes, place, result);
    };
    if (route.out != nullptr) put(route.out);
    HOCKET_UNROLL
    for (int j = 0; j < kPeers; ++j) {
      if (route.to[j] != nullptr) put(route.to[j]);
    }
  }
}

// Reduces a chunk from this rank's array and the slots with the peers' data.
template <int kPeers, typename Fold, typename Machine>
HOCKET_ANYWHERE void fold_chunk(Block<Machine>& block, Stretch kept) {
  const Route<kPeers> route = route_of<kPeers>(block, kept);
  constexpr int kBatch = kPeers > 3 ? 1 : kPeers > 1 ? 2 : 4;
  const auto vectors = static_cast<std::uint32_t>(vectors_in(kept.bytes));
  const auto threads = static_cast<std::uint32_t>(block.m.threads());
  auto i = static_cast<std::uint32_t>(block.m.thread());
  if (route.plain) {
    for (; i < vectors; i += kBatch * threads) {
      fold_places<true, kBatch, Fold>(block, route, i, vectors);
    }
  } else {
    for (; i < vectors; i += threads) fold_places<false, 1, Fold>(block, route, i, vectors);
  }
}

}  // namespace reduce_chunks_detail

// A pipeline of three stages. Each stage is the role of one block in each channel:
//
//   role 0   send this rank's data             lane kCollectives
//   role 1   reduce, and forward the results   from kCollectives to kResults
//   role 2   collect the results of peers      lane kResults
//
// If no results go to other ranks, a channel has only the first two blocks. If, in addition,
// results may overwrite data to send, a channel has a single block, which sends one round ahead.
template <int kPeers, typename Fold, typename Machine>
HOCKET_ANYWHERE void reduce_chunks(Machine& machine) {
  Machine& m = machine;
  m.await_previous();
  const Params& p = m.params();
  const int roles = static_cast<int>(p.roles);
  const bool puts = m.role() == 0, folds = m.role() == (roles > 1 ? 1 : 0),
             collects = m.role() == 2;
  const bool receives = folds || collects,
             sends_on = roles == static_cast<int>(kWithResults) && folds;
  Block<Machine> block(
      machine, collects ? kResults : kCollectives, sends_on ? kResults : kCollectives);
  Counters& shared = m.shared();
  const auto sends = [&](int j) { return shared.puts[j].bytes > 0; };
  const auto gives = [&](int j) { return shared.sources[j] != nullptr; };
  const auto wants = [&](int j) { return shared.targets[j] != nullptr; };
  const auto gets = [&](int j) { return shared.takes[j].bytes > 0; };
  if (receives) block.open_in();
  if (puts || sends_on) block.open_out();
  if (p.enter && collects) {
    block.open_arrays([&](int j) { return stretch_of(p.receive[j], m.channel(), 0).bytes > 0; });
  }
  if (p.enter && folds) {
    block.enter_arrays([&](int j) {
      return (p.forward >> j & 1) != 0 && stretch_of(p.kept, m.channel(), 0).bytes > 0;
    });
  }
  for (std::uint32_t turn = 0; turn < p.rounds + 1; ++turn) {
    if (puts && turn < p.rounds) {
      block.for_kept([&](int j) {
        const Stretch stretch = stretch_of(p.send[j], m.channel(), turn);
        shared.puts[j] = {p.send[j].at + stretch.first, block.chunk_to(j), stretch.bytes};
      });
      block.reserve(block.out_slots(), 0, sends);
      if (!block.meet()) return;
      for_moves(block, shared.puts, [&](const Move& move, Team team) { put_chunk(m, team, move); });
      if (!block.meet()) return;
      block.announce(sends);
    }
    if (turn == 0) continue;
    const std::uint32_t round = turn - 1;

    Stretch kept;
    if (folds) kept = stretch_of(p.kept, m.channel(), round);
    if (kept.bytes > 0) {  // the same for the whole block
      block.for_kept([&](int j) {
        const bool wanted = (p.forward >> j & 1) != 0;
        std::byte* const target = p.enter ? p.direct[j] + kept.first : block.chunk_to(j);
        shared.sources[j] = (p.sources >> j & 1) != 0 ? block.chunk_from(j) : nullptr;
        shared.targets[j] = wanted ? target : nullptr;
      });
      block.await(gives);
      block.reserve(block.out_slots(), 0, wants);
      if (!block.meet()) return;
      reduce_chunks_detail::fold_chunk<kPeers, Fold>(block, kept);
      if (!block.meet()) return;
      block.give_back(turn == p.rounds, gives);
      block.announce(wants);
    }

    if (!collects) continue;
    block.for_kept([&](int j) {
      const Stretch stretch = stretch_of(p.receive[j], m.channel(), round);
      shared.takes[j] = {block.chunk_from(j), p.receive[j].at + stretch.first, stretch.bytes};
    });
    block.await(gets);
    if (!block.meet()) return;
    if (!p.enter) {
      for_moves(
          block, shared.takes, [&](const Move& move, Team team) { take_chunk(m, team, move); });
      if (!block.meet()) return;
    }
    block.give_back(turn == p.rounds, gets);
  }
  if (receives) block.save_in();
  if (puts || sends_on) block.save_out();
}

}  // namespace hocket::engines::peer
