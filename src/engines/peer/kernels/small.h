// Calls on small arrays. Each thread moves one vector in two packets, in one hop. A call takes two
// microseconds, so each instruction of a thread counts. A thread computes everything that depends
// only on the parameters before the previous kernel of the stream ends. Afterwards it only loads,
// with all loads in flight together, computes the result, and stores.
#pragma once

#include "engines/peer/fold.h"
#include "engines/peer/kernels/block.h"

namespace hocket::engines::peer {

namespace small_detail {

// The two packets of a vector. They lie kSmallThreads packets apart in the slot, so that the lanes
// of a warp store adjacent packets.
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

// The address and length of one vector of an array. Vectors of whole words have inline code,
// because time matters most for data of 4 or 8 bytes.
struct Spot {
  std::byte* at = nullptr;
  std::uint32_t bytes = 0;
  std::uint32_t unit = 0;  // unit of the access, see unit_of; 0: the array has no such vector
};
HOCKET_ANYWHERE Spot spot_of(const SmallPiece& piece, std::uint32_t index) {
  const std::uint32_t begin = index * kVectorBytes;
  if (begin >= piece.bytes) return {};
  const std::uint32_t left = piece.bytes - begin;
  const std::uint32_t bytes = left < kVectorBytes ? left : kVectorBytes;
  return {piece.at + begin, bytes, unit_of(piece.at, bytes)};
}
HOCKET_ANYWHERE Vector load(const Spot& spot) {
  if (spot.unit == kVectorBytes) return load_aligned<Vector>(spot.at);
  if (spot.unit >= 4) return load_units<std::uint32_t>(spot.at, spot.bytes);
  return spot.unit > 0 ? load_some(spot.at, spot.bytes) : Vector{};
}
HOCKET_ANYWHERE void store(const Spot& spot, const Vector& vector) {
  if (spot.unit == kVectorBytes) return store_aligned(spot.at, vector);
  if (spot.unit >= 4) return store_units<std::uint32_t>(spot.at, vector, spot.bytes);
  if (spot.unit > 0) store_some(spot.at, vector, spot.bytes);
}

// The work of one thread, for one of the kSmallThreads positions of its channel. It sends one
// vector to each of up to kPeers peers, receives one vector from each, and keeps one. If this rank
// has only one source, the same vector goes to all peers. With `kFolds`, the thread combines the
// received vectors with the kept vector, and stores only the result.
template <int kPeers, bool kFolds, typename Machine>
class SmallThread {
 public:
  // Computes everything for sending that depends only on the parameters.
  HOCKET_ANYWHERE SmallThread(Block<Machine>& block, int thread)
      : block_(block),
        m_(block.m),
        p_(block.p),
        thread_(static_cast<std::uint32_t>(thread)),
        index_(static_cast<std::uint32_t>(m_.channel()) * kSmallThreads + thread_) {
    gives_ = p_.gives(index_ * kVectorBytes);
    link_ = block.in_here(0);
    dead_ = p_.dead();
    m_.work_out(gives_, link_, dead_);
    HOCKET_UNROLL
    for (int j = 0; j < kPeers; ++j) {
      to_[j] = block.packets_to(j, 0) + kSmallAt + thread_;
      m_.work_out(to_[j]);
    }
    if (p_.has_one_source()) {
      set(in_[0], p_.source());
    } else {
      HOCKET_UNROLL
      for (int j = 0; j < kPeers; ++j) set(in_[j], p_.piece_to(j));
      set(own_, p_.own());
    }
  }

  // Loads the counters and the data. The earlier work of the stream must have ended. All loads are
  // issued before any loaded value is used.
  HOCKET_ANYWHERE void open() {
    HOCKET_UNROLL
    for (int j = 0; j < kPeers; ++j) counters_[j] = m_.load_link(link_ + j);
    const std::uint32_t dead = m_.load_flag(dead_);
    sent_[0] = load(in_[0]);
    if (p_.has_one_source()) {
      HOCKET_UNROLL
      for (int j = 1; j < kPeers; ++j) sent_[j] = sent_[0];
      kept_ = sent_[0];
    } else {
      HOCKET_UNROLL
      for (int j = 1; j < kPeers; ++j) sent_[j] = load(in_[j]);
      kept_ = load(own_);
    }
    block_.failed = block_.failed || dead != 0;
  }

  // Sends all vectors, and gives back the slots that the previous call consumed. Returns false if
  // the thread gave up.
  HOCKET_ANYWHERE bool send_all() {
    const bool has_room = !block_.failed && lacks_room() == 0;
    if (!has_room && !wait_for_room()) return false;
    HOCKET_UNROLL
    for (int j = 0; j < kPeers; ++j) {
      if ((gives_ >> j & 1) == 0) continue;
      send(m_, in_slot(to_[j], counters_[j].sent), flag_of(counters_[j].sent), sent_[j]);
    }
    if (has_room) give_credit();
    return true;
  }

  // Receives the peers' vectors, and stores them or the result. Computes the targets while the data
  // arrives.
  template <typename Fold>
  HOCKET_ANYWHERE void receive() const {
    const std::uint32_t takes = takes_at(index_ * kVectorBytes);
    Vector come[kPeers];
    if constexpr (kFolds) {
      Spot to;
      if (takes == 0) return;
      set(to, p_.reduced());
      if (!collect(takes, come)) return;
      m_.let_next_begin();
      store(to, Fold::template apply_around<kPeers>(p_.fold, come, kept_, p_.rank, p_.peers));
    } else {
      store(spot_of(p_.own_to(), index_), kept_);
      if (takes == 0) return;
      Spot to[kPeers];
      HOCKET_UNROLL
      for (int j = 0; j < kPeers; ++j) set(to[j], p_.piece_from(j));
      if (!collect(takes, come)) return;
      m_.let_next_begin();
      HOCKET_UNROLL
      for (int j = 0; j < kPeers; ++j) store(to[j], come[j]);
    }
  }

  // Ends this block's step with each peer: stores the counters for the next kernel.
  HOCKET_ANYWHERE void save() const {
    const std::uint32_t begin =
        static_cast<std::uint32_t>(m_.channel()) * kSmallThreads * kVectorBytes;
    const std::uint32_t gives = p_.gives(begin), takes = takes_at(begin);
    HOCKET_UNROLL
    for (int j = 0; j < kPeers; ++j) {
      if (!block_.is_kept(j)) continue;
      const auto [sent, received, credit] = counters_[j];
      if ((takes >> j & 1) != 0) block_.sweep_now_and_then(j, received, 1);
      link_[j].own.sent = sent + (gives >> j & 1);
      link_[j].own.received = received + (takes >> j & 1);
    }
  }

 private:
  HOCKET_ANYWHERE void set(Spot& spot, const SmallPiece& piece) const {
    spot = spot_of(piece, index_);
    m_.work_out(spot.at, spot.unit);
  }
  // Returns one bit for each peer from which this rank takes data at byte `place` of the pieces.
  HOCKET_ANYWHERE std::uint32_t takes_at(std::uint32_t place) const {
    if (!kFolds) return p_.takes(place);
    return place < p_.own().bytes ? (1u << p_.peers) - 1 : 0u;
  }
  template <typename At>
  static HOCKET_ANYWHERE At* in_slot(At* first, std::uint64_t step) {
    return first + static_cast<std::uint32_t>(step) % kPacketSlots * kPacketsOfSlot;
  }

  HOCKET_ANYWHERE void give_credit() const {
    HOCKET_UNROLL
    for (int j = 0; j < kPeers; ++j) {
      if (!block_.is_kept(j)) continue;
      m_.store_credit(&block_.in_there(j)->peer.credit, counters_[j].received);
    }
  }
  // Returns one bit for each peer that has not yet given back the slot that this thread must write.
  HOCKET_ANYWHERE std::uint32_t lacks_room() const {
    std::uint32_t lacking = 0;
    HOCKET_UNROLL
    for (int j = 0; j < kPeers; ++j) {
      if (counters_[j].credit + kPacketSlots <= counters_[j].sent) lacking |= 1u << j;
    }
    return lacking & gives_;
  }
  // Waits until every peer has given back the slot that this thread must write. Gives credit first,
  // because the peers may be waiting for credit from this rank. Returns false if the thread gave
  // up.
  HOCKET_ANYWHERE bool wait_for_room() {
    if (block_.failed) return false;
    give_credit();
    while (const std::uint32_t missing = lacks_room()) {
      HOCKET_UNROLL
      for (int j = 0; j < kPeers; ++j) {
        counters_[j].credit = m_.load_credit(&link_[j].peer.credit);
      }
      if (block_.gives_up(missing)) return false;
    }
    return true;
  }

  // Waits for the vectors of all peers with a bit in `expected`. The slots of the other peers are
  // read, too, so that no branch separates the loads. Returns false if the thread gave up.
  HOCKET_ANYWHERE bool collect(std::uint32_t expected, Vector (&come)[kPeers]) const {
    const Packet* from[kPeers];
    HOCKET_UNROLL
    for (int j = 0; j < kPeers; ++j) {
      from[j] = in_slot(block_.packets_from(j, 0) + kSmallAt + thread_, counters_[j].received);
    }
    while (true) {
      PackedVector packed[kPeers];
      HOCKET_UNROLL
      for (int j = 0; j < kPeers; ++j) packed[j] = peek(m_, from[j]);
      std::uint32_t missing = expected;
      HOCKET_UNROLL
      for (int j = 0; j < kPeers; ++j) {
        if (is_there(packed[j], flag_of(counters_[j].received))) missing &= ~(1u << j);
        come[j] = unpacked(packed[j]);
      }
      if (missing == 0) return true;
      if (block_.gives_up(missing)) return false;
    }
  }

  Block<Machine>& block_;
  Machine& m_;
  const typename Machine::Parameters& p_;
  std::uint32_t thread_, index_;
  std::uint32_t gives_;  // one bit for each peer that gets a vector
  Link* link_;           // the link with peer 0; the links with the other peers follow it
  Packet* to_[kPeers];   // this thread's packet in the first slot of each link
  Spot in_[kPeers], own_;
  const std::uint32_t* dead_;
  OpenLink counters_[kPeers];
  Vector sent_[kPeers];
  Vector kept_;
};

// Runs a small call. A thread on a GPU handles one position, a thread on a host handles several.
template <int kPeers, bool kFolds, typename Fold, typename Machine>
HOCKET_ANYWHERE void run(Machine& m) {
  using Here = SmallThread<kPeers, kFolds, Machine>;
  Block<Machine> block(m);
  if constexpr (Machine::kWide) {
    Here place(block, m.thread());
    m.await_previous();
    place.open();
    if (place.send_all()) place.template receive<Fold>();
    if (!block.meet()) return;
    place.save();
  } else {
    const auto for_places = [&](const auto& act) {
      for (int t = m.thread(); t < static_cast<int>(kSmallThreads); t += m.threads()) {
        Here place(block, t);
        place.open();
        if (!block.failed) act(place);
      }
    };
    for_places([](Here& place) { place.send_all(); });
    for_places([](Here& place) { place.template receive<Fold>(); });
    if (!block.meet()) return;
    Here last(block, m.thread());
    last.open();
    last.save();
  }
}

}  // namespace small_detail

// Reductions in one hop.
template <int kPeers, typename Fold, typename Machine>
HOCKET_ANYWHERE void reduce_small(Machine& machine) {
  small_detail::run<kPeers, true, Fold>(machine);
}

// Movement in one hop. The data to a peer and the data from this peer may have the same address.
template <int kPeers, typename Machine>
HOCKET_ANYWHERE void exchange_small(Machine& machine) {
  small_detail::run<kPeers, false, AnyFold>(machine);
}

}  // namespace hocket::engines::peer
