#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "engines/peer/cuts.h"
#include "engines/peer/plan_parts.h"

namespace hocket::engines::peer {

using engine::Call;
using engine::Flow;
using engine::Has;
using engine::Kind;

namespace {

// The data that this rank moves to and from each rank, including itself. Arrays are indexed by
// rank.
struct PeerMoves {
  std::array<CutArray, kMaxRanks> send{}, receive{};
  bool same = false;  // this rank sends the same data to all ranks
  // The address in each rank's output array for this rank's data. Null if it is not known.
  std::array<std::byte*, kMaxRanks> direct{};
  bool symmetric = false;  // `direct` is known
  // Whether the copy engines may carry the call, equal on all ranks. They make one copy after
  // another. So they do not pay if ranks also copy a part for themselves.
  bool by_engines = false;
};

// Computes the moves of a call on this rank.
class MovesOf {
 public:
  MovesOf(const Call& call, const Member& member, PeerOuts outs)
      : call_(call), member_(member), outs_(outs) {}

  PeerMoves make() {
    const auto rank = static_cast<std::size_t>(member_.rank);
    const auto root = static_cast<std::size_t>(call_.signature.root);
    const bool at_root = rank == root;
    const Kind kind = call_.signature.kind;
    const engine::KindRow& row = engine::row_of(kind);
    const std::size_t own = engine::own_bytes(call_);
    const Has gives = engine::given(kind, at_root);
    if (gives == Has::kAll) {
      send_parts();
    } else if (row.flow == Flow::kToRoot) {
      send(root, 0, own);
    } else if (gives != Has::kNothing) {
      for (std::size_t q = 0; q < size(); ++q) send(q, 0, own);
      moves_.same = own > 0;
    }
    const Has takes = engine::taken(kind, at_root);
    if (takes == Has::kAll) {
      take_parts();
    } else if (takes != Has::kNothing) {
      take(root, 0, own);
    }
    const bool whole = row.takes == Has::kCount;
    moves_.by_engines = whole;
    const bool overwrites = swaps_parts(kind) && call_.in == call_.out;
    if (engine::all_take_alike(kind) && !overwrites) enter(whole ? 0 : rank * share());
    return moves_;
  }

 private:
  std::size_t size() const { return static_cast<std::size_t>(member_.size); }
  std::size_t share() const { return engine::bytes_of(call_.signature); }
  void send(std::size_t q, std::size_t offset, std::size_t bytes) {
    moves_.send[q] = part_at(call_.in, offset, bytes);
  }
  void take(std::size_t q, std::size_t offset, std::size_t bytes) {
    moves_.receive[q] = part_at(call_.out, offset, bytes);
  }
  void send_parts() {
    for (std::size_t q = 0; q < size(); ++q) {
      const engine::Part part = part_of(call_, call_.in_parts, static_cast<int>(q));
      send(q, part.offset, part.bytes);
    }
  }
  void take_parts() {
    for (std::size_t q = 0; q < size(); ++q) {
      const engine::Part part = part_of(call_, call_.out_parts, static_cast<int>(q));
      take(q, part.offset, part.bytes);
    }
  }
  void enter(std::size_t offset) {
    if (outs_.empty()) return;
    moves_.symmetric = true;
    for (std::size_t q = 0; q < size(); ++q) moves_.direct[q] = outs_[q] + offset;
  }

  const Call& call_;
  const Member& member_;
  PeerOuts outs_;
  PeerMoves moves_;
};

// Returns the parameters of a small call, in which the pieces of all ranks lie at equal distances.
SmallParams small_call(const Call& call, const Member& member) {
  const engine::Signature& s = call.signature;
  SmallParams p = small_of(member, kCollectives);
  p.in = static_cast<std::byte*>(const_cast<void*>(call.in));
  p.out = static_cast<std::byte*>(call.out);
  const auto share = static_cast<std::uint32_t>(engine::bytes_of(s));
  const engine::KindRow& row = engine::row_of(s.kind);
  const bool from_root = row.flow == Flow::kFromRoot;
  const bool rooted = is_rooted(s.kind);
  const bool at_root = rooted && member.rank == s.root;
  const std::uint8_t others = at_root || !rooted ? all_peers(p) : bit_of(s.root, p);
  if (!rooted || at_root == from_root) p.sends = others;
  if (!rooted || at_root != from_root) p.receives = others;
  if (row.gives == Has::kAll) p.in_stride = share;
  if (!from_root) p.out_stride = share;
  if (!rooted || at_root) {
    const std::size_t rank = p.rank;
    p.keeps = p.in + p.in_stride * rank != p.out + p.out_stride * rank;
  }
  if (p.sends != 0 || p.keeps != 0) p.in_bytes = share;
  if (p.receives != 0) p.out_bytes = share;
  return p;
}

// Returns the largest number of bytes that a link carries as a small call. Both ends of a link use
// this limit, so their two kernels for small calls can talk to each other.
std::size_t most_small(const PeerTuning& tuning) {
  return std::min({tuning.small, tuning.packets, kSmallBytes});
}

// Divides the moves among launches by their size. Both ends of a link choose the same protocol,
// because they know the same size.
class Movement {
 public:
  Movement(const PeerMoves& moves, const Params& params, int rank, const PeerTuning& tuning)
      : moves_(moves),
        params_(params),
        tuning_(tuning),
        rank_(static_cast<std::size_t>(rank)),
        size_(params.peers + std::size_t{1}) {
    for (std::size_t q = 0; q < size_; ++q) {
      if (q != rank_) most_ = std::max({most_, moves.send[q].bytes, moves.receive[q].bytes});
    }
  }

  std::vector<Step> steps() {
    constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
    if (moves_.symmetric && most_ > tuning_.direct) {  // in these calls all moves have equal size
      if (moves_.by_engines && most_ >= tuning_.engines) {
        add_copies();
      } else {
        add_exchange(Protocol::kExchangeDirect, 0, kAll);
      }
      return steps_;
    }
    const std::size_t small = most_small(tuning_);
    const std::size_t most = params_.lane == kMessages ? tuning_.messages : tuning_.packets;
    const std::size_t packets = tuning_.lines ? std::max(small, most) : small;
    add_exchange(Protocol::kExchangeSmallParts, 0, small);
    add_exchange(Protocol::kExchangePackets, small, packets);
    add_exchange(Protocol::kExchangeChunks, packets, kAll);
    if (steps_.empty() && stays()) steps_.push_back(copy_own());
    return steps_;
  }

 private:
  // Returns whether this rank must copy its own part to a different address.
  bool stays() const {
    return moves_.receive[rank_].bytes > 0 && moves_.receive[rank_].at != moves_.send[rank_].at;
  }
  Step copy_own() const {
    return copy_step(moves_.receive[rank_].at, moves_.send[rank_].at, moves_.receive[rank_].bytes);
  }

  // Adds a launch for the moves of more than `over` bytes, up to `upto` bytes. The launch with the
  // largest move also copies this rank's own part. A launch for small moves cannot copy a longer
  // one, so a copy of its own follows it.
  void add_exchange(Protocol protocol, std::size_t over, std::size_t upto) {
    Step step{.protocol = protocol, .params = params_};
    Params& p = step.params;
    const auto within = [&](const CutArray& part) {
      return part.bytes > over && part.bytes <= upto;
    };
    bool any = false;
    for (std::size_t q = 0; q < size_; ++q) {
      if (q == rank_) continue;
      const int j = peer_number(static_cast<int>(q), static_cast<int>(rank_));
      if (within(moves_.send[q])) p.send[j] = moves_.send[q];
      if (within(moves_.receive[q])) p.receive[j] = moves_.receive[q];
      p.direct[j] = moves_.direct[q];
      any = any || p.send[j].bytes + p.receive[j].bytes > 0;
    }
    if (!any) return;
    const bool keeps = most_ > over && most_ <= upto && stays();
    const bool fits =
        protocol != Protocol::kExchangeSmallParts || moves_.receive[rank_].bytes <= upto;
    if (keeps && fits) {
      p.kept = moves_.send[rank_];
      p.kept_to = moves_.receive[rank_];
    }
    p.same = moves_.same && p.peers > 1 ? 1 : 0;
    if (protocol == Protocol::kExchangeSmallParts) {
      cut_small(step);
    } else if (protocol == Protocol::kExchangePackets) {
      cut_packets(step, tuning_);
    } else {
      cut_chunks(step, tuning_);
    }
    steps_.push_back(step);
    if (keeps && !fits) steps_.push_back(copy_own());
  }

  // Adds copies by the GPU's copy engines, between two barriers.
  void add_copies() {
    Step barrier;
    static_cast<LaneParams&>(barrier.small) = params_;
    steps_.push_back(barrier);
    for (std::size_t i = 1; i < size_; ++i) {
      const std::size_t q = (rank_ + i) % size_;
      const CutArray& part = moves_.send[q];
      if (part.bytes > 0) steps_.push_back(copy_step(moves_.direct[q], part.at, part.bytes));
    }
    if (stays()) steps_.push_back(copy_own());
    steps_.push_back(barrier);
  }

  const PeerMoves& moves_;
  const Params& params_;
  const PeerTuning& tuning_;
  std::size_t rank_;
  std::size_t size_;
  std::size_t most_ = 0;  // largest number of bytes to or from a peer
  std::vector<Step> steps_;
};

bool is_small(std::size_t bytes, const PeerTuning& tuning) { return bytes <= most_small(tuning); }
std::vector<Step> one_small(const SmallParams& params) {
  Step step{.protocol = Protocol::kExchangeSmall, .small = params};
  cut_small(step);
  return {step};
}

// Returns the parameters for the common case: at most one small message in each direction, and no
// message to this rank itself. Returns nothing in other cases.
std::optional<SmallParams> small_messages(std::span<const PeerMessage> messages,
                                          const Member& member,
                                          const PeerTuning& tuning) {
  SmallParams p = small_of(member, kMessages);
  for (const PeerMessage& message : messages) {
    if (message.send_bytes == 0 && message.receive_bytes == 0) continue;
    if (message.peer == member.rank) return std::nullopt;
    if (message.send_bytes > 0) {
      if (p.sends != 0 || !is_small(message.send_bytes, tuning)) return std::nullopt;
      p.sends = bit_of(message.peer, p);
      p.in = static_cast<std::byte*>(const_cast<void*>(message.send));
      p.in_bytes = static_cast<std::uint32_t>(message.send_bytes);
    }
    if (message.receive_bytes > 0) {
      if (p.receives != 0 || !is_small(message.receive_bytes, tuning)) return std::nullopt;
      p.receives = bit_of(message.peer, p);
      p.out = static_cast<std::byte*>(message.receive);
      p.out_bytes = static_cast<std::uint32_t>(message.receive_bytes);
    }
  }
  if (p.sends == 0 && p.receives == 0) return std::nullopt;
  return p;
}

}  // namespace

std::vector<Step> plan_movement(const Call& call,
                                const Member& member,
                                const PeerTuning& tuning,
                                PeerOuts outs) {
  const engine::Signature& s = call.signature;
  if (!is_listed(s.kind) && is_small(engine::bytes_of(s), tuning)) {
    const SmallParams params = small_call(call, member);
    if (params.sends == 0 && params.receives == 0) return {};
    return one_small(params);
  }
  const PeerMoves moves = MovesOf(call, member, outs).make();
  return Movement(moves, params_of(member, kCollectives), member.rank, tuning).steps();
}

std::vector<Step> plan_messages(std::span<const PeerMessage> messages,
                                const Member& member,
                                const PeerTuning& tuning) {
  if (const auto params = small_messages(messages, member, tuning)) return one_small(*params);
  PeerMoves moves;
  for (const PeerMessage& message : messages) {
    const auto q = static_cast<std::size_t>(message.peer);
    if (message.send_bytes > 0) moves.send[q] = part_at(message.send, 0, message.send_bytes);
    if (message.receive_bytes > 0) {
      moves.receive[q] = part_at(message.receive, 0, message.receive_bytes);
    }
  }
  return Movement(moves, params_of(member, kMessages), member.rank, tuning).steps();
}

}  // namespace hocket::engines::peer
