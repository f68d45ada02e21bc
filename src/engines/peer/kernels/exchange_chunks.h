// Movement of large arrays. exchange_chunks moves them in chunks through the receivers' staging
// areas. exchange_direct writes directly into symmetric arrays.
#pragma once

#include "engines/peer/kernels/chunks.h"

namespace hocket::engines::peer {

namespace exchange_chunks_detail {

// Copies this round's stretch of the part that this rank keeps.
template <typename Machine>
HOCKET_ANYWHERE void copy_kept(Block<Machine>& block, std::uint32_t round) {
  const CutArray& from = block.p.kept;
  const CutArray& to = block.p.kept_to;
  const Stretch stretch = stretch_of(to, block.m.channel(), round);
  if (stretch.bytes == 0) return;
  copy_chunk(whole(block.m), {from.at + stretch.first, to.at + stretch.first, stretch.bytes});
}

// Sends a chunk that goes to every peer: reads it once and writes it to all peers.
template <typename Machine>
HOCKET_ANYWHERE void put_same(Block<Machine>& block) {
  Machine& m = block.m;
  const Move& move = m.shared().puts[0];
  if (move.bytes == 0) return;
  const auto peers = static_cast<int>(block.p.peers);
  std::byte* to[kMaxPeers] = {};
  HOCKET_UNROLL
  for (int i = 0; i < kMaxPeers; ++i) {
    // Each rank starts with the next rank, so that the ranks do not all write to the same peer.
    const int j = static_cast<int>(block.p.rank) + i;
    if (i < peers) to[i] = m.shared().puts[j < peers ? j : j - peers].to;
  }
  with_loads(move.from, move.bytes, [&](const auto& load) {
    for_vectors(whole(m), move.bytes, load, [&](std::uint32_t at, const Vector& v) {
      HOCKET_UNROLL
      for (int i = 0; i < kMaxPeers; ++i) {
        if (to[i] != nullptr) m.store_staged(to[i] + std::uint64_t{at} * kVectorBytes, v);
      }
    });
  });
}

}  // namespace exchange_chunks_detail

// A channel has two blocks: one block sends, the other one receives and copies the part that this
// rank keeps. If received data may overwrite data to send, a single block does both, and sends one
// round ahead of receiving.
template <typename Machine>
HOCKET_ANYWHERE void exchange_chunks(Machine& machine) {
  using namespace exchange_chunks_detail;
  Block<Machine> block(machine);
  Machine& m = machine;
  m.await_previous();
  const Params& p = block.p;
  Counters& shared = m.shared();
  const auto sends = [&](int j) { return shared.puts[j].bytes > 0; };
  const auto gets = [&](int j) { return shared.takes[j].bytes > 0; };
  const bool puts = m.role() == 0, takes = m.role() + 1 == static_cast<int>(p.roles);
  if (takes) block.open_in();
  if (puts) block.open_out();
  for (std::uint32_t round = 0; round < p.rounds + 1; ++round) {
    if (puts && round < p.rounds) {
      block.for_kept([&](int j) {
        const Stretch stretch = stretch_of(p.send[j], m.channel(), round);
        shared.puts[j] = {p.send[j].at + stretch.first, block.chunk_to(j), stretch.bytes};
      });
      block.reserve(block.out_slots(), 0, sends);
      if (!block.meet()) return;
      if (p.same) {
        put_same(block);
      } else {
        for_moves(
            block, shared.puts, [&](const Move& move, Team team) { put_chunk(m, team, move); });
      }
      if (!block.meet()) return;
      block.announce(sends);
    }
    if (!takes) continue;
    if (round < p.rounds) copy_kept(block, round);
    if (round == 0) continue;
    block.for_kept([&](int j) {
      const Stretch stretch = stretch_of(p.receive[j], m.channel(), round - 1);
      shared.takes[j] = {block.chunk_from(j), p.receive[j].at + stretch.first, stretch.bytes};
    });
    block.await(gets);
    if (!block.meet()) return;
    for_moves(block, shared.takes, [&](const Move& move, Team team) { take_chunk(m, team, move); });
    if (!block.meet()) return;
    block.give_back(round == p.rounds, gets);
  }
  if (takes) block.save_in();
  if (puts) block.save_out();
}

// Writes directly into the peers' arrays, direct[j]. The blocks of a channel have the same roles as
// in exchange_chunks. A link has only one step, which uses no slot: the sender announces it when
// all data of the channel is written.
template <typename Machine>
HOCKET_ANYWHERE void exchange_direct(Machine& machine) {
  using namespace exchange_chunks_detail;
  Block<Machine> block(machine);
  Machine& m = machine;
  m.await_previous();
  const Params& p = block.p;
  if (m.role() == 0) {
    const auto sends = [&](int j) { return stretch_of(p.send[j], m.channel(), 0).bytes > 0; };
    block.open_out();
    block.reserve(block.out_slots(), 0, sends);
    block.enter_arrays(sends);
    for (std::uint32_t round = 0; round < p.rounds; ++round) {
      block.for_kept([&](int j) {
        const Stretch stretch = stretch_of(p.send[j], m.channel(), round);
        m.shared().puts[j] = {
            p.send[j].at + stretch.first, p.direct[j] + stretch.first, stretch.bytes};
      });
      if (!block.meet()) return;
      for_moves(
          block, m.shared().puts, [&](const Move& move, Team team) { copy_chunk(team, move); });
      if (!block.meet()) return;
    }
    block.announce(sends);
    block.save_out();
  } else {
    const auto gets = [&](int j) { return stretch_of(p.receive[j], m.channel(), 0).bytes > 0; };
    block.open_in();
    block.open_arrays(gets);
    for (std::uint32_t round = 0; round < p.rounds; ++round) copy_kept(block, round);
    block.await(gets);
    if (!block.meet()) return;
    block.give_back(true, gets);
    block.save_in();
  }
}

}  // namespace hocket::engines::peer
