// Calls on small arrays: a vector a thread, in two packets, in one hop. All of this is on the way
// of a call of two microseconds, where the number of instructions that a thread goes through
// counts: it does little, straight on, and has its loads under way together.
#pragma once

#include "engines/peer/block.h"
#include "engines/peer/fold.h"

namespace hocket::engines::peer {

namespace small_detail {

// The two packets of a vector. They lie apart, so that those of a warp lie side by side.
struct PackedVector {
  Packet first, second;
};
template <typename Machine>
HOCKET_ANYWHERE void send(Machine& m, Packet* slot, std::uint32_t flag, const Vector& v) {
  m.store_packet(slot, {{v.word[0], v.word[1], v.word[2]}, flag});
  m.store_packet(slot + kSmallThreads, {{v.word[3], 0, 0}, flag});
}
template <typename Machine>
HOCKET_ANYWHERE PackedVector peek(Machine& m, const Packet* slot) {
  return {m.load_packet(slot), m.load_packet(slot + kSmallThreads)};
}
HOCKET_ANYWHERE bool is_there(const PackedVector& packed, std::uint32_t flag) {
  return packed.first.flag == flag && packed.second.flag == flag;
}
HOCKET_ANYWHERE Vector unpacked(const PackedVector& packed) {
  const Packet& first = packed.first;
  return {{first.word[0], first.word[1], first.word[2], packed.second.word[0]}};
}

// Vectors of arrays in whole words are moved without a call, for what is of 4 or 8 bytes is short
// of time.
HOCKET_ANYWHERE Vector load(const Piece& piece, std::uint32_t index) {
  const std::byte* from = piece.at + std::uint64_t{index} * kVectorBytes;
  const std::uint32_t left = piece.bytes - index * kVectorBytes;
  if (left >= kVectorBytes && is_plain(piece.at, 0)) return load_aligned<Vector>(from);
  const std::uint32_t bytes = left < kVectorBytes ? left : kVectorBytes;
  return unit_of(from, bytes) >= 4 ? load_units<std::uint32_t>(from, bytes)
                                   : load_some(from, bytes);
}
HOCKET_ANYWHERE void store(const Piece& piece, std::uint32_t index, const Vector& vector) {
  std::byte* to = piece.at + std::uint64_t{index} * kVectorBytes;
  const std::uint32_t left = piece.bytes - index * kVectorBytes;
  if (left >= kVectorBytes && is_plain(piece.at, 0)) return store_aligned(to, vector);
  const std::uint32_t bytes = left < kVectorBytes ? left : kVectorBytes;
  if (unit_of(to, bytes) >= 4) return store_units<std::uint32_t>(to, vector, bytes);
  store_some(to, vector, bytes);
}

// What one thread sends: a vector to each of up to kPeers peers, and what it keeps. Where there is
// one source, the first one goes to all.
template <int kPeers>
struct Outgoing {
  Vector peers[kPeers];
  Vector own;
};

// One thread's place in its channel, of kSmallThreads, and in the pieces.
template <int kPeers, typename Machine>
struct Place {
  Block<Machine>& block;
  const typename Machine::Parameters& p;
  std::uint32_t thread;
  std::uint32_t index;

  HOCKET_ANYWHERE Place(Block<Machine>& b, int t)
      : block(b),
        p(b.p),
        thread(static_cast<std::uint32_t>(t)),
        index(static_cast<std::uint32_t>(b.m.channel()) * kSmallThreads + thread) {}

  HOCKET_ANYWHERE bool is_in(const Piece& piece) const {
    return index * kVectorBytes < piece.bytes;
  }

  HOCKET_ANYWHERE Outgoing<kPeers> load(bool with_own) const {
    Outgoing<kPeers> out;
    if (p.has_one_source()) {
      if (is_in(p.source())) out.peers[0] = small_detail::load(p.source(), index);
      out.own = out.peers[0];
      return out;
    }
    HOCKET_UNROLL
    for (int j = 0; j < kPeers; ++j) {
      const Piece piece = p.piece_to(j);
      if (is_in(piece)) out.peers[j] = small_detail::load(piece, index);
    }
    if (with_own && is_in(p.own())) out.own = small_detail::load(p.own(), index);
    return out;
  }

  HOCKET_ANYWHERE void send_all(const Outgoing<kPeers>& out) const {
    HOCKET_UNROLL
    for (int j = 0; j < kPeers; ++j) {
      if (!is_in(p.piece_to(j))) continue;
      const std::uint64_t step = block.m.shared().sent[j];
      const Vector& v = p.has_one_source() ? out.peers[0] : out.peers[j];
      send(block.m, block.packets_to(j, step) + kSmallAt + thread, flag_of(step), v);
    }
  }

  // The vectors of all peers with a bit in `expected`, polled together; the places of others are
  // read too, so that loads have no branch between them. False: given up.
  HOCKET_ANYWHERE bool collect(std::uint32_t expected, Vector (&come)[kPeers]) const {
    Machine& m = block.m;
    const Packet* slot[kPeers];
    std::uint32_t flag[kPeers];
    HOCKET_UNROLL
    for (int j = 0; j < kPeers; ++j) {
      const int peer = j < static_cast<int>(p.peers) ? j : 0;
      const std::uint64_t step = m.shared().received[peer];
      slot[j] = block.packets_from(peer, step) + kSmallAt + thread;
      flag[j] = flag_of(step);
    }
    while (true) {
      PackedVector packed[kPeers];
      HOCKET_UNROLL
      for (int j = 0; j < kPeers; ++j) packed[j] = peek(m, slot[j]);
      std::uint32_t missing = expected;
      HOCKET_UNROLL
      for (int j = 0; j < kPeers; ++j) {
        if (is_there(packed[j], flag[j])) missing &= ~(1u << j);
        come[j] = unpacked(packed[j]);
      }
      if (missing == 0) return true;
      if (block.gives_up(missing)) return false;
    }
  }

  // Folds what has come with what was kept.
  template <typename Fold>
  HOCKET_ANYWHERE void reduce(const Vector& own) const {
    if (!is_in(p.own())) return;
    Vector come[kPeers];
    if (!collect((1u << p.peers) - 1, come)) return;
    const auto folded = Fold::template apply_around<kPeers>(p.fold, come, own, p.rank, p.peers);
    store(p.reduced(), index, folded);
  }

  // Takes what has come to its arrays.
  HOCKET_ANYWHERE void take() const {
    std::uint32_t expected = 0;
    HOCKET_UNROLL
    for (int j = 0; j < kPeers; ++j) {
      if (is_in(p.piece_from(j))) expected |= 1u << j;
    }
    if (expected == 0) return;
    Vector come[kPeers];
    if (!collect(expected, come)) return;
    HOCKET_UNROLL
    for (int j = 0; j < kPeers; ++j) {
      const Piece piece = p.piece_from(j);
      if (is_in(piece)) store(piece, index, come[j]);
    }
  }

  HOCKET_ANYWHERE void copy_own() const {
    if (is_in(p.own_to())) store(p.own_to(), index, small_detail::load(p.own(), index));
  }
};

// The frame of both calls: finish(place, own) is what follows when all has been sent.
template <int kPeers, typename Machine, typename Gets, typename Finish>
HOCKET_ANYWHERE void run(Machine& machine, bool with_own, const Gets& gets, const Finish& finish) {
  using Here = Place<kPeers, Machine>;
  Block<Machine> block(machine);
  Machine& m = machine;
  const auto& p = block.p;
  const std::uint32_t begin =
      static_cast<std::uint32_t>(m.channel()) * kSmallThreads * kVectorBytes;
  const auto sends = [&](int j) { return begin < p.piece_to(j).bytes; };
  if constexpr (Machine::kWide) {  // the data are under way while the counters come
    const Here place(block, m.thread());
    const Outgoing<kPeers> out = place.load(with_own);
    block.open();
    block.reserve(kPacketSlots, 0, sends);
    if (!block.meet()) return;
    place.send_all(out);
    finish(place, out.own);
  } else {
    block.open();
    block.reserve(kPacketSlots, 0, sends);
    if (!block.meet()) return;
    for (int t = m.thread(); t < static_cast<int>(kSmallThreads); t += m.threads()) {
      const Here place(block, t);
      place.send_all(place.load(false));
    }
    for (int t = m.thread(); t < static_cast<int>(kSmallThreads); t += m.threads()) {
      const Here place(block, t);
      if (!block.failed) finish(place, place.load(with_own).own);
    }
  }
  if (!block.meet()) return;
  m.let_next_begin();
  block.give_back_packets(true, 1, [&](int j) { return gets(begin, j); });
  block.count_sent(1, sends);
  block.save();
}

}  // namespace small_detail

// Reductions of what goes in one hop.
template <int kPeers, typename Fold, typename Machine>
HOCKET_ANYWHERE void reduce_small(Machine& machine) {
  const auto& p = machine.params();
  small_detail::run<kPeers>(
      machine,
      true,
      [&](std::uint32_t begin, int) { return begin < p.own().bytes; },
      [](const auto& place, const Vector& own) { place.template reduce<Fold>(own); });
}

// Movement. What goes to a peer and what comes from it may be at one place.
template <int kPeers, typename Machine>
HOCKET_ANYWHERE void exchange_small(Machine& machine) {
  const auto& p = machine.params();
  small_detail::run<kPeers>(
      machine,
      false,
      [&](std::uint32_t begin, int j) { return begin < p.piece_from(j).bytes; },
      [](const auto& place, const Vector&) {
        place.copy_own();
        place.take();
      });
}

}  // namespace hocket::engines::peer
