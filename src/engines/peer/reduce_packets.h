// Reductions of small arrays: in one hop, where every rank sends its data to whoever reduces it,
// and in two, where the results of parts are sent to all.
#pragma once

#include "engines/peer/bundles.h"

namespace hocket::engines::peer {

namespace reduce_packets_detail {

// Packets of one place from up to kMost ranks, polled together. Ranks that send nothing here are
// read from where another one writes, to save branches between the loads.
template <int kMost, typename Machine>
HOCKET_ANYWHERE bool collect(Block<Machine>& block,
                             std::uint32_t offset,
                             std::uint32_t rows,
                             std::uint64_t ahead,
                             PackedBundle (&packed)[kMost]) {
  Machine& m = block.m;
  const Params& p = block.p;
  const int other = p.rank == 0 ? 1 : 0;
  std::uint32_t missing;
  do {
    HOCKET_UNROLL
    for (int q = 0; q < kMost; ++q) {
      const int from = q < p.size && q != p.rank ? q : other;
      const std::uint64_t step = m.shared().received[from] + ahead;
      packed[q] = peek_bundle(m, block.packets(p.rank, from, step) + offset, rows);
    }
    missing = 0;
    HOCKET_UNROLL
    for (int q = 0; q < kMost; ++q) {
      const int from = q < p.size && q != p.rank ? q : other;
      const std::uint64_t step = m.shared().received[from] + ahead;
      if (!is_there(packed[q], flag_of(step))) missing |= 1u << from;
    }
  } while (missing != 0 && !block.gives_up(missing));
  return missing == 0;
}

// The bundle of this rank's part, reduced over all ranks.
template <int kMost, typename Fold>
HOCKET_ANYWHERE Bundle fold_bundles(const Params& p,
                                    const Bundle& own,
                                    std::uint32_t rows,
                                    const PackedBundle (&packed)[kMost]) {
  Bundle result;
  HOCKET_UNROLL
  for (int r = 0; r < static_cast<int>(kRows); ++r) {
    if (static_cast<std::uint32_t>(r) >= rows) continue;
    Vector v[kMost];
    HOCKET_UNROLL
    for (int q = 0; q < kMost; ++q) v[q] = q == p.rank ? own.row[r] : row_of(packed[q], r);
    result.row[r] = Fold::apply(p.fold, v, p.size);
  }
  return result;
}

// Sends the place of `vector` in each part to whoever reduces that; returns what stays here.
template <int kMost, typename Machine>
HOCKET_ANYWHERE Bundle
scatter(Block<Machine>& block, std::uint32_t round, std::uint32_t group, std::uint32_t lane) {
  Machine& m = block.m;
  const Params& p = block.p;
  const std::uint32_t place = group * kVectorsOfGroup + lane;
  const std::uint32_t offset = group * kPacketsOfGroup + lane;
  Bundle own{};
  const Strip kept = strip_of(p.send[p.rank], m.channel(), round);
  const std::uint32_t kept_rows = rows_of(kept, group, lane);
  if (kept_rows > 0) own = load_bundle(p.send[p.rank], kept.first + place, kept_rows);
  if (p.same) {
    HOCKET_UNROLL
    for (int q = 0; q < kMost; ++q) {
      if (q >= p.size || q == p.rank || kept_rows == 0) continue;
      const std::uint64_t step = m.shared().sent[q];
      send_bundle(m, block.packets(q, p.rank, step) + offset, kept_rows, flag_of(step), own);
    }
    return own;
  }
  // All loads first: they come from memory far away.
  Bundle bundle[kMost];
  std::uint32_t rows[kMost];
  HOCKET_UNROLL
  for (int q = 0; q < kMost; ++q) {
    rows[q] = 0;
    if (q >= p.size || q == p.rank) continue;
    const Strip strip = strip_of(p.send[q], m.channel(), round);
    rows[q] = rows_of(strip, group, lane);
    if (rows[q] > 0) bundle[q] = load_bundle(p.send[q], strip.first + place, rows[q]);
  }
  HOCKET_UNROLL
  for (int q = 0; q < kMost; ++q) {
    if (rows[q] == 0) continue;
    const std::uint64_t step = m.shared().sent[q];
    send_bundle(m, block.packets(q, p.rank, step) + offset, rows[q], flag_of(step), bundle[q]);
  }
  return own;
}

}  // namespace reduce_packets_detail

// One hop. Blocks of whole warps; every thread stays at its places, so that `out` may be `send`.
template <int kMost, typename Fold, typename Machine>
HOCKET_ANYWHERE void reduce_packets(Machine& machine) {
  using namespace reduce_packets_detail;
  Block<Machine> block(machine);
  Machine& m = machine;
  const Params& p = block.p;
  block.open();
  for (std::uint32_t round = 0; round < p.rounds; ++round) {
    const auto sends = [&](int q) { return strip_of(p.send[q], m.channel(), round).count > 0; };
    const Strip kept = strip_of(p.send[p.rank], m.channel(), round);
    block.reserve(0, sends);
    if (!block.meet()) return;
    const std::uint32_t bundles = p.groups * kLanesOfGroup;
    for (auto i = static_cast<std::uint32_t>(m.thread()); i < bundles;
         i += static_cast<std::uint32_t>(m.threads())) {
      const std::uint32_t lane = i % kLanesOfGroup, group = i / kLanesOfGroup;
      const Bundle own = scatter<kMost>(block, round, group, lane);
      const std::uint32_t rows = rows_of(kept, group, lane);
      if (rows == 0) continue;
      PackedBundle packed[kMost];
      if (!collect(block, group * kPacketsOfGroup + lane, rows, 0, packed)) break;
      const Part out{p.out, p.send[p.rank].bytes};
      store_bundle(out,
                   kept.first + group * kVectorsOfGroup + lane,
                   rows,
                   fold_bundles<kMost, Fold>(p, own, rows, packed));
    }
    if (!block.meet()) return;
    give_back_packets(block, [&](int) { return kept.count > 0; });
    block.count_sent(1, sends);
  }
  block.save();
}

// Two hops, for all_reduce: send[q] is the part that rank q reduces, receive[q] where its result
// goes, for the own rank too. In each round every link carries two steps, if with nothing in them.
template <int kMost, typename Fold, typename Machine>
HOCKET_ANYWHERE void all_reduce_packets(Machine& machine) {
  using namespace reduce_packets_detail;
  Block<Machine> block(machine);
  Machine& m = machine;
  const Params& p = block.p;
  const auto everybody = [](int) { return true; };
  block.open();
  for (std::uint32_t round = 0; round < p.rounds; ++round) {
    block.reserve(1, everybody);
    if (!block.meet()) return;
    const Strip kept = strip_of(p.send[p.rank], m.channel(), round);
    const std::uint32_t bundles = p.groups * kLanesOfGroup;
    for (auto i = static_cast<std::uint32_t>(m.thread()); i < bundles;
         i += static_cast<std::uint32_t>(m.threads())) {
      const std::uint32_t lane = i % kLanesOfGroup, group = i / kLanesOfGroup;
      const std::uint32_t offset = group * kPacketsOfGroup + lane;
      const std::uint32_t place = group * kVectorsOfGroup + lane;
      const Bundle own = scatter<kMost>(block, round, group, lane);
      PackedBundle packed[kMost];
      const std::uint32_t rows = rows_of(kept, group, lane);
      if (rows > 0) {
        if (!collect(block, offset, rows, 0, packed)) break;
        const Bundle result = fold_bundles<kMost, Fold>(p, own, rows, packed);
        HOCKET_UNROLL
        for (int q = 0; q < kMost; ++q) {
          if (q >= p.size || q == p.rank) continue;
          const std::uint64_t step = m.shared().sent[q] + 1;
          send_bundle(m, block.packets(q, p.rank, step) + offset, rows, flag_of(step), result);
        }
        store_bundle(p.receive[p.rank], kept.first + place, rows, result);
      }
      // The results of others. Parts differ in length by little, so nearly always all have one.
      HOCKET_UNROLL
      for (int q = 0; q < kMost; ++q) {
        if (q >= p.size || q == p.rank || block.failed) continue;
        const Strip strip = strip_of(p.receive[q], m.channel(), round);
        const std::uint32_t theirs = rows_of(strip, group, lane);
        if (theirs == 0) continue;
        const std::uint64_t step = m.shared().received[q] + 1;
        const Packet* slot = block.packets(p.rank, q, step) + offset;
        PackedBundle come = peek_bundle(m, slot, theirs);
        while (!is_there(come, flag_of(step)) && !block.gives_up(1u << q)) {
          come = peek_bundle(m, slot, theirs);
        }
        if (!block.failed) store_bundle(p.receive[q], strip.first + place, theirs, unpacked(come));
      }
      if (block.failed) break;
    }
    if (!block.meet()) return;
    give_back_packets(block, everybody);
    give_back_packets(block, everybody);
    block.count_sent(2, everybody);
  }
  block.save();
}

}  // namespace hocket::engines::peer
