#include <algorithm>

#include "engines/peer/cuts.h"
#include "engines/peer/plan_parts.h"

namespace hocket::engines::peer {

using engine::Call;
using engine::Kind;

namespace {

struct ByteRange {
  std::size_t first = 0, bytes = 0;
};
// Divides `bytes` bytes into `parts` parts of whole vectors, and returns part `index`. The last
// parts may be shorter or empty.
ByteRange range_of(std::size_t bytes, int parts, int index) {
  const auto n = static_cast<std::uint64_t>(parts);
  const std::size_t length = (vectors_in(bytes) + n - 1) / n * kVectorBytes;
  const std::size_t first = std::min(bytes, length * static_cast<std::size_t>(index));
  return {first, std::min(bytes - first, length)};
}

// Plans one reduction, or one broadcast by relays, on this rank.
class ReductionPlan {
 public:
  ReductionPlan(const Call& call, const Member& member, const PeerTuning& tuning, PeerOuts outs)
      : call_(call),
        tuning_(tuning),
        outs_(outs),
        rank_(member.rank),
        size_(member.size),
        p_(params_of(member, kCollectives)) {
    p_.fold = fold_code(call.signature.dtype, call.signature.op, member.size);
    p_.sources = all_peers(p_);
    p_.own_source = 1;
  }

  std::vector<Step> all_reduce() {
    const std::size_t bytes = engine::bytes_of(call_.signature);
    if (bytes * p_.peers <= tuning_.one_hop && fits_packets(bytes)) {
      whole_to_all(bytes);
      return {one_hop(bytes)};
    }
    for (int q = 0; q < size_; ++q) {
      const ByteRange range = range_of(bytes, size_, q);
      reduced_by(q, range.first, range.bytes);
      wanted_from(q, range.first, range.bytes);
    }
    if (tuning_.lines && bytes <= tuning_.two_hops) return {two_hops(bytes)};
    p_.forward = all_peers(p_);
    p_.roles = kWithResults;
    enter(range_of(bytes, size_, rank_).first);
    return {chunks()};
  }

  std::vector<Step> reduce() {
    const std::size_t bytes = engine::bytes_of(call_.signature);
    const int root = call_.signature.root;
    const bool at_root = rank_ == root;
    if (bytes <= std::max(tuning_.to_one, tuning_.relays) || size_ == 2) {
      reduced_by(root, 0, bytes);
      if (at_root) wanted_from(root, 0, bytes);
      return {bytes <= tuning_.to_one && fits_packets(bytes) ? one_hop(bytes) : chunks()};
    }
    // Each rank except the root reduces one part and forwards the result to the root.
    p_.roles = kWithResults;
    for_relays(bytes, root, [&](int q, ByteRange range) {
      reduced_by(q, range.first, range.bytes);
      if (at_root) wanted_from(q, range.first, range.bytes);
    });
    if (!at_root) p_.forward = 1u << peer_number(root, rank_);
    return {chunks()};
  }

  std::vector<Step> reduce_scatter() {
    const bool listed = call_.signature.kind == Kind::kReduceScatterV;
    const std::size_t share = engine::bytes_of(call_.signature);
    std::size_t most = 0;
    for (int q = 0; q < size_; ++q) {
      const auto i = static_cast<std::size_t>(q);
      const std::size_t bytes = listed ? call_.in_parts.bytes[i] : share;
      reduced_by(q, listed ? call_.in_parts.offsets[i] : i * share, bytes);
      most = std::max(most, bytes);
    }
    if (most == 0) return {};
    p_.kept_to = part_at(call_.out, 0, p_.kept.bytes);
    if (most > tuning_.scattered || !fits_packets(most)) return {chunks()};
    const Step step = one_hop(most);
    if (listed || step.protocol != Protocol::kReducePackets) return {step};
    return {perhaps_even(step, share * static_cast<std::size_t>(size_), share, 1)};
  }

  // Plans a broadcast by relays. It is a reduction with the root as its only source: each other
  // rank receives one part from the root and forwards it to all other ranks.
  std::vector<Step> broadcast() {
    const std::size_t bytes = engine::bytes_of(call_.signature);
    const int root = call_.signature.root;
    const bool at_root = rank_ == root;
    p_.roles = kWithResults;
    p_.fold = FoldCode{};
    p_.sources = at_root ? 0 : 1u << peer_number(root, rank_);
    p_.own_source = 0;
    for_relays(bytes, root, [&](int q, ByteRange range) {
      if (at_root || q == rank_) reduced_by(q, range.first, range.bytes);
      if (!at_root) wanted_from(q, range.first, range.bytes);
      if (q != rank_) return;
      p_.forward = all_peers(p_) & ~(1u << peer_number(root, rank_));
      enter(range.first);
    });
    if (!outs_.empty()) p_.enter = 1;  // on the root, too, which calls no `enter` above
    std::vector<Step> steps{chunks()};
    if (at_root && call_.out != call_.in) steps.push_back(copy_step(call_.out, call_.in, bytes));
    return steps;
  }

 private:
  // Records that rank `q` reduces these bytes of all ranks' inputs.
  void reduced_by(int q, std::size_t first, std::size_t bytes) {
    CutArray& part = q == rank_ ? p_.kept : p_.send[peer_number(q, rank_)];
    part = part_at(call_.in, first, bytes);
  }
  // Records that this rank wants the result of these bytes, which rank `q` reduces.
  void wanted_from(int q, std::size_t first, std::size_t bytes) {
    CutArray& part = q == rank_ ? p_.kept_to : p_.receive[peer_number(q, rank_)];
    part = part_at(call_.out, first, bytes);
  }
  // Records that every rank reduces the whole array.
  void whole_to_all(std::size_t bytes) {
    for (int q = 0; q < size_; ++q) reduced_by(q, 0, bytes);
    wanted_from(rank_, 0, bytes);
    p_.same = 1;
  }
  // Calls act(rank, range) for each rank except the root, with the part that this rank relays.
  template <typename Act>
  void for_relays(std::size_t bytes, int root, const Act& act) const {
    for (int q = 0, index = 0; q < size_; ++q) {
      if (q != root) act(q, range_of(bytes, size_ - 1, index++));
    }
  }
  // Lets this rank write its results directly into the peers' arrays, if they are known.
  void enter(std::size_t first) {
    if (outs_.empty()) return;
    p_.enter = 1;
    for (int q = 0; q < size_; ++q) {
      if (q != rank_) p_.direct[peer_number(q, rank_)] = outs_[static_cast<std::size_t>(q)] + first;
    }
  }

  // Returns whether this is a small call, which moves one vector in each thread. `most` is the
  // bytes of the longest part.
  bool is_small(std::size_t most) const {
    const bool listed = call_.signature.kind == Kind::kReduceScatterV;
    return !listed && most <= std::min(tuning_.small, kSmallBytes);
  }
  bool fits_packets(std::size_t most) const { return tuning_.lines || is_small(most); }
  // Plans a reduction by packets in one hop. Small calls use a simpler kernel.
  Step one_hop(std::size_t most) const {
    if (!is_small(most)) return packets(Protocol::kReducePackets);
    Step step{.protocol = Protocol::kReduceSmall, .small = small()};
    cut_small(step);
    return step;
  }
  // Plans an all_reduce by packets in two hops.
  Step two_hops(std::size_t bytes) const {
    const Step step = packets(Protocol::kAllReducePackets);
    const std::size_t part = range_of(bytes, size_, 0).bytes;
    if (bytes <= part * p_.peers) return step;
    return perhaps_even(step, bytes, part, 2);
  }
  // Returns a step with the faster kernel for equal parts if this rank's arrays allow it. Otherwise
  // returns `step`. Ranks may differ in this, because both kernels send the same packets in the
  // same slots.
  Step perhaps_even(Step step, std::size_t bytes, std::size_t part, std::uint32_t hops) const {
    auto* out = static_cast<std::byte*>(call_.out);
    if (hops == 1) out -= part * static_cast<std::size_t>(rank_);
    if (!is_plain(call_.in, bytes) || !is_plain(out, part)) return step;
    EvenParams& p = step.even;
    static_cast<LaneParams&>(p) = p_;
    p.fold = p_.fold;
    p.in = static_cast<std::byte*>(const_cast<void*>(call_.in));
    p.out = out;
    p.vectors = static_cast<std::uint32_t>(vectors_in(bytes));
    p.part = static_cast<std::uint32_t>(vectors_in(part));
    p.unit = step.params.kept.unit;
    p.hops = hops;
    step.protocol = Protocol::kReduceEven;
    return step;
  }
  SmallParams small() const {
    const engine::Signature& s = call_.signature;
    SmallParams p;
    static_cast<LaneParams&>(p) = p_;
    const bool to_all = s.kind != Kind::kReduce;
    p.fold = p_.fold;
    p.keeps = to_all || rank_ == s.root;
    p.sends = to_all ? all_peers(p) : p.keeps != 0 ? std::uint8_t{0} : bit_of(s.root, p);
    p.in = static_cast<std::byte*>(const_cast<void*>(call_.in));
    p.out = static_cast<std::byte*>(call_.out);
    p.in_bytes = static_cast<std::uint32_t>(engine::bytes_of(s));
    p.in_stride = s.kind == Kind::kReduceScatter ? p.in_bytes : 0;
    return p;
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
  const PeerTuning& tuning_;
  PeerOuts outs_;
  int rank_;
  int size_;
  Params p_;
};

}  // namespace

std::vector<Step> plan_reduction(const Call& call,
                                 const Member& member,
                                 const PeerTuning& tuning,
                                 PeerOuts outs) {
  ReductionPlan reduction(call, member, tuning, outs);
  const Kind kind = call.signature.kind;
  if (!is_reduction(kind)) return reduction.broadcast();
  if (has_parts(kind)) return reduction.reduce_scatter();
  return is_rooted(kind) ? reduction.reduce() : reduction.all_reduce();
}

}  // namespace hocket::engines::peer
