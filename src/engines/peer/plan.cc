#include "engines/peer/plan.h"

#include <algorithm>
#include <array>
#include <bit>

#include "engines/peer/cuts.h"

namespace hocket::engines::peer {

using engine::Call;
using engine::Kind;

namespace {

Params params_of(const Member& member, int lane) {
  Params p;
  std::copy(std::begin(member.staging), std::end(member.staging), p.staging);
  p.host = member.host;
  p.limit_ns = member.limit_ns;
  p.rank = static_cast<std::uint8_t>(member.rank);
  p.size = static_cast<std::uint8_t>(member.size);
  p.lane = static_cast<std::uint8_t>(lane);
  return p;
}

Step copy_step(void* to, const void* from, std::size_t bytes) {
  return {.copy_to = static_cast<std::byte*>(to),
          .copy_from = static_cast<const std::byte*>(from),
          .copy_bytes = bytes};
}

// --- Movement -----------------------------------------------------------------------------------

// What this rank moves: to and from each rank, itself included.
struct Moves {
  std::array<Part, kMaxRanks> send{}, receive{};
  bool same = false;
  // Where peers take what goes to them; null: not known.
  std::array<std::byte*, kMaxRanks> direct{};
  bool symmetric = false;
};

class MovesOf {
 public:
  MovesOf(const Call& call, const Member& member, const PeerArrays* arrays)
      : call_(call), member_(member), arrays_(arrays) {}

  Moves make() {
    const auto rank = static_cast<std::size_t>(member_.rank);
    const auto root = static_cast<std::size_t>(call_.signature.root);
    const bool at_root = rank == root;
    switch (call_.signature.kind) {
      case Kind::kBroadcast:
        at_root ? send_all([](std::size_t) { return std::size_t{0}; }) : take(root, 0, share());
        if (at_root) take(root, 0, share());
        moves_.same = at_root;
        enter([](std::size_t) { return std::size_t{0}; });
        break;
      case Kind::kAllGather:
        send_all([](std::size_t) { return std::size_t{0}; });
        take_all();
        moves_.same = true;
        enter([&](std::size_t) { return rank * share(); });
        break;
      case Kind::kAllToAll:
        send_all([&](std::size_t q) { return q * share(); });
        take_all();
        if (call_.in != call_.out) enter([&](std::size_t) { return rank * share(); });
        break;
      case Kind::kGather:
        send(root, 0, share());
        if (at_root) take_all();
        break;
      case Kind::kScatter:
        if (at_root) send_all([&](std::size_t q) { return q * share(); });
        take(root, 0, share());
        break;
      case Kind::kAllGatherV:
        for (std::size_t q = 0; q < size(); ++q) send(q, 0, call_.own_bytes);
        take_listed();
        moves_.same = call_.own_bytes > 0;
        break;
      case Kind::kGatherV:
        send(root, 0, call_.own_bytes);
        if (at_root) take_listed();
        break;
      case Kind::kScatterV:
        if (at_root) send_listed();
        take(root, 0, call_.own_bytes);
        break;
      default:  // all_to_all_v
        send_listed();
        take_listed();
        break;
    }
    return moves_;
  }

 private:
  std::size_t size() const { return static_cast<std::size_t>(member_.size); }
  std::size_t share() const { return engine::bytes_of(call_.signature); }
  void send(std::size_t q, std::size_t offset, std::size_t bytes) {
    // Kernels only read what is sent.
    auto* in = static_cast<std::byte*>(const_cast<void*>(call_.in));
    if (bytes > 0) moves_.send[q] = {.at = in + offset, .bytes = bytes};
  }
  void take(std::size_t q, std::size_t offset, std::size_t bytes) {
    if (bytes > 0) {
      moves_.receive[q] = {.at = static_cast<std::byte*>(call_.out) + offset, .bytes = bytes};
    }
  }
  template <typename Offset>
  void send_all(const Offset& offset) {
    for (std::size_t q = 0; q < size(); ++q) send(q, offset(q), share());
  }
  void take_all() {
    for (std::size_t q = 0; q < size(); ++q) take(q, q * share(), share());
  }
  void send_listed() {
    for (std::size_t q = 0; q < size(); ++q) {
      send(q, call_.in_parts.offsets[q], call_.in_parts.bytes[q]);
    }
  }
  void take_listed() {
    for (std::size_t q = 0; q < size(); ++q) {
      take(q, call_.out_parts.offsets[q], call_.out_parts.bytes[q]);
    }
  }
  template <typename Offset>
  void enter(const Offset& offset) {
    if (arrays_ == nullptr) return;
    moves_.symmetric = true;
    for (std::size_t q = 0; q < size(); ++q) moves_.direct[q] = arrays_->out[q] + offset(q);
  }

  const Call& call_;
  const Member& member_;
  const PeerArrays* arrays_;
  Moves moves_;
};

// One launch of an exchange; `takes(bytes)` says which of the moves it is for.
template <typename Takes>
void add_exchange(std::vector<Step>& steps,
                  Protocol protocol,
                  const Params& params,
                  const Moves& moves,
                  const Tuning& tuning,
                  bool with_own,
                  const Takes& takes) {
  Step step{.protocol = protocol, .params = params};
  Params& p = step.params;
  bool any = false;
  for (std::size_t q = 0; q < p.size; ++q) {
    const bool own = q == p.rank;
    if (own && !with_own) continue;
    if (moves.send[q].bytes > 0 && (own || takes(moves.send[q].bytes))) p.send[q] = moves.send[q];
    if (moves.receive[q].bytes > 0 && (own || takes(moves.receive[q].bytes))) {
      p.receive[q] = moves.receive[q];
    }
    p.direct[q] = moves.direct[q];
    any = any || (!own && p.send[q].bytes + p.receive[q].bytes > 0);
  }
  if (!any) return;
  if (p.send[p.rank].bytes == 0) p.receive[p.rank] = {};
  // Nothing to be copied: nothing to be cut.
  if (p.send[p.rank].at == p.receive[p.rank].at) p.send[p.rank] = p.receive[p.rank] = {};
  p.same = moves.same && p.size > 2;
  p.enter = protocol == Protocol::kExchangeDirect;
  if (protocol == Protocol::kExchangePackets) {
    cut_packets(step, tuning);
  } else {
    cut_chunks(step, tuning);
  }
  steps.push_back(step);
}

// By the copy engines, between two barriers.
void add_copies(std::vector<Step>& steps, const Params& params, const Moves& moves) {
  const Step barrier{.protocol = Protocol::kBarrier, .params = params};
  steps.push_back(barrier);
  const std::size_t size = params.size;
  for (std::size_t i = 1; i < size; ++i) {
    const std::size_t q = (params.rank + i) % size;
    if (moves.send[q].bytes == 0) continue;
    steps.push_back(copy_step(moves.direct[q], moves.send[q].at, moves.send[q].bytes));
  }
  const Part& own = moves.receive[params.rank];
  if (own.at != moves.send[params.rank].at && own.bytes > 0) {
    steps.push_back(copy_step(own.at, moves.send[params.rank].at, own.bytes));
  }
  steps.push_back(barrier);
}

std::vector<Step> plan_moves(const Moves& moves, const Params& params, const Tuning& tuning) {
  std::vector<Step> steps;
  std::size_t most = 0;
  for (std::size_t q = 0; q < params.size; ++q) {
    if (q != params.rank) most = std::max({most, moves.send[q].bytes, moves.receive[q].bytes});
  }
  if (moves.symmetric && most > tuning.packets) {  // all moves are of one size
    if (most >= tuning.engines) {
      add_copies(steps, params, moves);
    } else {
      add_exchange(
          steps, Protocol::kExchangeDirect, params, moves, tuning, true, [](auto) { return true; });
    }
    return steps;
  }
  const auto small = [&](std::size_t bytes) { return bytes <= tuning.packets; };
  const auto large = [&](std::size_t bytes) { return bytes > tuning.packets; };
  const bool own_large = most > tuning.packets;
  add_exchange(steps, Protocol::kExchangePackets, params, moves, tuning, !own_large, small);
  add_exchange(steps, Protocol::kExchangeChunks, params, moves, tuning, own_large, large);
  const Part& own = moves.receive[params.rank];
  if (steps.empty() && own.bytes > 0 && own.at != moves.send[params.rank].at) {
    steps.push_back(copy_step(own.at, moves.send[params.rank].at, own.bytes));
  }
  return steps;
}

// --- Reductions ---------------------------------------------------------------------------------

struct Range {
  std::size_t first = 0, bytes = 0;
};
// Part `index` of `bytes` cut into `parts` of whole vectors, the last ones perhaps shorter.
Range part_of(std::size_t bytes, int parts, int index) {
  const auto n = static_cast<std::uint64_t>(parts);
  const std::size_t length = (vectors_in(bytes) + n - 1) / n * kVectorBytes;
  const std::size_t first = std::min(bytes, length * static_cast<std::size_t>(index));
  return {first, std::min(bytes - first, length)};
}

class Reduction {
 public:
  Reduction(const Call& call, const Member& member, const Tuning& tuning, const PeerArrays* arrays)
      : call_(call), tuning_(tuning), arrays_(arrays), p_(params_of(member, kCollectives)) {
    const engine::Signature& s = call.signature;
    p_.fold = fold_code(s.dtype, s.op, member.size);
    all_sources();
  }

  std::vector<Step> all_reduce() {
    const std::size_t bytes = engine::bytes_of(call_.signature);
    const std::size_t size = p_.size;
    if (bytes * (size - 1) <= tuning_.one_hop) {
      whole_to_all();
      return {packets(Protocol::kReducePackets)};
    }
    if (size == 2 && bytes > tuning_.two_hops) {
      whole_to_all();
      return {chunks()};
    }
    for (int q = 0; q < p_.size; ++q) {
      const Range range = part_of(bytes, p_.size, q);
      own_part(q, range.first, range.bytes);
      want_part(q, range.first, range.bytes);
    }
    if (bytes <= tuning_.two_hops) return {packets(Protocol::kAllReducePackets)};
    p_.out = p_.receive[p_.rank].at;
    p_.receive[p_.rank] = {};
    p_.forward = (1u << p_.size) - 1 - (1u << p_.rank);
    if (arrays_ != nullptr) enter(part_of(bytes, p_.size, p_.rank).first);
    return {chunks()};
  }

  std::vector<Step> reduce() {
    const std::size_t bytes = engine::bytes_of(call_.signature);
    const int root = call_.signature.root;
    const bool at_root = p_.rank == root;
    if (bytes <= tuning_.relays || p_.size == 2) {
      own_part(root, 0, bytes);
      p_.out = at_root ? static_cast<std::byte*>(call_.out) : nullptr;
      if (bytes <= tuning_.packets) return {packets(Protocol::kReducePackets)};
      return {chunks()};
    }
    // All but the root reduce a part each.
    relay_parts(bytes, root, [&](int q, Range range) {
      own_part(q, range.first, range.bytes);
      if (at_root) want_part(q, range.first, range.bytes);
    });
    if (!at_root) p_.forward = 1u << root;
    return {chunks()};
  }

  std::vector<Step> reduce_scatter(bool listed) {
    std::size_t most = 0;
    const std::size_t share = engine::bytes_of(call_.signature);
    for (int q = 0; q < p_.size; ++q) {
      const auto i = static_cast<std::size_t>(q);
      const std::size_t bytes = listed ? call_.in_parts.bytes[i] : share;
      own_part(q, listed ? call_.in_parts.offsets[i] : i * share, bytes);
      most = std::max(most, bytes);
    }
    if (most == 0) return {};
    p_.out = static_cast<std::byte*>(call_.out);
    if (most <= tuning_.packets) return {packets(Protocol::kReducePackets)};
    return {chunks()};
  }

  // A broadcast by relays: of one source, whose parts are forwarded by one rank each.
  std::vector<Step> broadcast() {
    const std::size_t bytes = engine::bytes_of(call_.signature);
    const int root = call_.signature.root;
    const bool at_root = p_.rank == root;
    p_.fold = FoldCode{};
    p_.sources[0] = static_cast<std::uint8_t>(root);
    p_.source_count = 1;
    relay_parts(bytes, root, [&](int q, Range range) {
      if (at_root || q == p_.rank) own_part(q, range.first, range.bytes);
      if (!at_root && q != p_.rank) want_part(q, range.first, range.bytes);
      if (q != p_.rank) return;
      p_.out = static_cast<std::byte*>(call_.out) + range.first;
      p_.forward = (1u << p_.size) - 1 - (1u << p_.rank) - (1u << root);
      if (arrays_ != nullptr) enter(range.first);
    });
    std::vector<Step> steps{chunks()};
    if (arrays_ != nullptr) steps[0].params.enter = 1;
    if (at_root && call_.out != call_.in) steps.push_back(copy_step(call_.out, call_.in, bytes));
    return steps;
  }

 private:
  void all_sources() {
    p_.source_count = p_.size;
    for (std::uint8_t q = 0; q < p_.size; ++q) p_.sources[q] = q;
  }
  // Rank `q` reduces these bytes of all.
  void own_part(int q, std::size_t first, std::size_t bytes) {
    auto* in = static_cast<std::byte*>(const_cast<void*>(call_.in));  // only read
    if (bytes == 0) return;
    // Who relays a broadcast has no `in`.
    p_.send[q] = {.at = in != nullptr ? in + first : nullptr, .bytes = bytes};
  }
  void want_part(int q, std::size_t first, std::size_t bytes) {
    auto* out = static_cast<std::byte*>(call_.out);
    if (bytes > 0) p_.receive[q] = {.at = out + first, .bytes = bytes};
  }
  // Everybody reduces everything.
  void whole_to_all() {
    for (int q = 0; q < p_.size; ++q) own_part(q, 0, engine::bytes_of(call_.signature));
    p_.out = static_cast<std::byte*>(call_.out);
    p_.same = 1;
  }
  template <typename Act>
  void relay_parts(std::size_t bytes, int root, const Act& act) {
    for (int q = 0, index = 0; q < p_.size; ++q) {
      if (q != root) act(q, part_of(bytes, p_.size - 1, index++));
    }
  }
  void enter(std::size_t first) {
    p_.enter = 1;
    for (int q = 0; q < p_.size; ++q) p_.direct[q] = arrays_->out[q] + first;
  }
  Step packets(Protocol protocol) const {
    Step step{.protocol = protocol, .params = p_};
    cut_packets(step, tuning_);
    return step;
  }
  Step chunks() const {
    Step step{.protocol = Protocol::kReduceChunks, .params = p_};
    cut_chunks(step, tuning_);
    return step;
  }

  const Call& call_;
  const Tuning& tuning_;
  const PeerArrays* arrays_;
  Params p_;
};

// One rank: what comes out is what goes in.
std::vector<Step> plan_alone(const Call& call) {
  const bool listed = call.signature.kind >= Kind::kReduceScatterV;
  std::size_t bytes = listed ? call.own_bytes : engine::bytes_of(call.signature);
  const auto* in = static_cast<const std::byte*>(call.in);
  auto* out = static_cast<std::byte*>(call.out);
  if (call.in_parts.bytes != nullptr) {
    in += call.in_parts.offsets[0];
    bytes = call.in_parts.bytes[0];
  }
  if (call.out_parts.bytes != nullptr) out += call.out_parts.offsets[0];
  if (call.signature.kind == Kind::kBarrier || bytes == 0 || in == out) return {};
  return {copy_step(out, in, bytes)};
}

}  // namespace

Tuning default_tuning(int size) noexcept {
  Tuning tuning;
  if (size == 2) tuning.two_hops = tuning.one_hop;
  return tuning;
}

Folding folding_of(FoldCode code) noexcept {
  if (code.operation != Operation::kSum) return Folding::kAny;
  if (code.form == Form::kFloat32) return Folding::kSumFloat32;
  if (code.form == Form::kFloat16) return Folding::kSumFloat16;
  if (code.form == Form::kBFloat16) return Folding::kSumBFloat16;
  return Folding::kAny;
}

std::vector<Step> plan(const Call& call,
                       const Member& member,
                       const Tuning& tuning,
                       const PeerArrays* arrays) {
  if (member.size == 1) return plan_alone(call);
  const engine::Signature& s = call.signature;
  if (s.kind == Kind::kBarrier) {
    return {{.protocol = Protocol::kBarrier, .params = params_of(member, kCollectives)}};
  }
  const bool listed = s.kind >= Kind::kReduceScatterV;
  if (!listed && s.count == 0) return {};
  Reduction reduction(call, member, tuning, arrays);
  switch (s.kind) {
    case Kind::kAllReduce:
      return reduction.all_reduce();
    case Kind::kReduce:
      return reduction.reduce();
    case Kind::kReduceScatter:
    case Kind::kReduceScatterV:
      return reduction.reduce_scatter(listed);
    case Kind::kBroadcast:
      if (member.size > 2 && engine::bytes_of(s) > tuning.relays) return reduction.broadcast();
      break;
    default:
      break;
  }
  return plan_moves(MovesOf(call, member, arrays).make(), params_of(member, kCollectives), tuning);
}

std::vector<Step> plan_messages(std::span<const Message> messages,
                                const Member& member,
                                const Tuning& tuning) {
  Moves moves;
  for (const Message& message : messages) {
    const auto q = static_cast<std::size_t>(message.peer);
    if (message.send_bytes > 0) {
      auto* from = static_cast<std::byte*>(const_cast<void*>(message.send));  // only read
      moves.send[q] = {.at = from, .bytes = message.send_bytes};
    }
    if (message.receive_bytes > 0) {
      moves.receive[q] = {.at = static_cast<std::byte*>(message.receive),
                          .bytes = message.receive_bytes};
    }
  }
  return plan_moves(moves, params_of(member, kMessages), tuning);
}

}  // namespace hocket::engines::peer
