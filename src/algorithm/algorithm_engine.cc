#include "algorithm/algorithm_engine.h"

#include <algorithm>

namespace hocket::algorithm {

using engine::Call;
using engine::Kind;
using engine::Score;
using engine::Signature;
using engine::Task;

namespace {

// What an all-to-all in place copies aside at a time; stays in a second-level cache.
constexpr std::size_t kSwapBytes = 256 * 1024;

// What a call costs: messages that follow one another, and bytes through the busiest rank.
struct Cost {
  double rounds = 0;
  double bytes = 0;
};

Cost cost(Kind kind, int n, double bytes, bool is_short) {
  const double log = doublings(n);
  const double ranks = n;
  const double peers = ranks - 1;
  switch (kind) {
    case Kind::kBroadcast:
      return is_short ? Cost{log, log * bytes} : Cost{ranks, 2 * bytes};
    case Kind::kAllReduce:
      return is_short ? Cost{log, peers * bytes} : Cost{ranks, 2 * bytes};
    case Kind::kReduce:
      return is_short ? Cost{1, peers * bytes} : Cost{2, 2 * bytes};
    case Kind::kAllGather:
      return {is_short ? log : peers, peers * bytes};
    case Kind::kAllGatherV:  // counted as a whole
      return {peers, bytes};
    case Kind::kReduceScatterV:
      return {1, bytes};
    case Kind::kReduceScatter:
    case Kind::kGather:
    case Kind::kScatter:
    case Kind::kGatherV:
    case Kind::kScatterV:
      return {1, peers * bytes};
    case Kind::kAllToAll:
    case Kind::kAllToAllV:
      return {peers, peers * bytes};
    default:
      return {log, 0};
  }
}

Whole whole(const Call& call) {
  return {static_cast<const std::byte*>(call.in),
          static_cast<std::byte*>(call.out),
          bytes_of(call.signature)};
}

// The arrays of a call whose parts are of one length or, in the v-forms, listed.
Parts parts_of(const Call& call, const engine::PartsView& listed) {
  return call.signature.kind >= Kind::kReduceScatterV ? Parts::listed(listed)
                                                      : Parts::equal(bytes_of(call.signature));
}
ConstArray in_array(const Call& call) {
  return {static_cast<const std::byte*>(call.in), parts_of(call, call.in_parts)};
}
Array out_array(const Call& call) {
  return {static_cast<std::byte*>(call.out), parts_of(call, call.out_parts)};
}

// A rank's single part, of `in` or of `out`.
std::size_t own_bytes(const Call& call) {
  return call.signature.kind >= Kind::kReduceScatterV ? call.own_bytes : bytes_of(call.signature);
}
std::span<const std::byte> own_in(const Call& call) {
  return {static_cast<const std::byte*>(call.in), own_bytes(call)};
}
std::span<std::byte> own_out(const Call& call) {
  return {static_cast<std::byte*>(call.out), own_bytes(call)};
}

}  // namespace

std::optional<Score> AlgorithmEngine::score(const Signature& s) const noexcept {
  if (s.memory != MemoryKind::kHost || s.kind == Kind::kNone || s.kind > Kind::kAllToAllV) {
    return std::nullopt;
  }
  const Cost c = cost(s.kind, facts_.size, static_cast<double>(bytes_of(s)), is_short(s));
  return Score{c.rounds * tuning_.round_us + c.bytes / tuning_.bytes_per_us};
}

bool AlgorithmEngine::is_short(const Signature& s) const noexcept {
  const bool whole_once = s.kind == Kind::kBroadcast;
  const auto arrays = whole_once ? std::size_t{1} : static_cast<std::size_t>(facts_.size);
  return bytes_of(s) <= tuning_.short_bytes / arrays;
}

Task AlgorithmEngine::start(const Call& call) {
  const Endpoint at(carrier_, facts_, call);
  switch (call.signature.kind) {
    case Kind::kBroadcast:
      return start_broadcast(at, call);
    case Kind::kReduce:
    case Kind::kAllReduce:
    case Kind::kReduceScatter:
    case Kind::kReduceScatterV:
      return start_reduction(at, call);
    case Kind::kAllGather:
    case Kind::kAllGatherV:
      return start_all_gather(at, call);
    case Kind::kGather:
    case Kind::kGatherV:
      return linear_gather(at, own_in(call), out_array(call), call.signature.root);
    case Kind::kScatter:
    case Kind::kScatterV:
      return linear_scatter(at, in_array(call), own_out(call), call.signature.root);
    case Kind::kAllToAll:
    case Kind::kAllToAllV:
      return start_all_to_all(at, call);
    default:
      return dissemination_barrier(at);
  }
}

Task AlgorithmEngine::start_broadcast(const Endpoint& at, const Call& call) const {
  const Whole array = whole(call);
  const bool tree = at.size() <= 2 || is_short(call.signature);
  return tree ? binomial_broadcast(at, array, call.signature.root)
              : scatter_broadcast(at, array, call.signature.root);
}

Task AlgorithmEngine::start_all_gather(const Endpoint& at, const Call& call) const {
  const bool equal = call.signature.kind == Kind::kAllGather;
  if (equal && at.size() > 2 && is_short(call.signature)) {
    return ordered_bruck_all_gather(at, own_in(call), static_cast<std::byte*>(call.out));
  }
  return ring_all_gather(at, own_in(call), out_array(call));
}

Task AlgorithmEngine::start_all_to_all(const Endpoint& at, const Call& call) const {
  const std::size_t scratch = std::min(tuning_.scratch_bytes, kSwapBytes);
  if (call.in == call.out) return in_place_all_to_all(at, out_array(call), scratch);
  return pairwise_all_to_all(at, in_array(call), out_array(call), scratch);
}

Task AlgorithmEngine::start_reduction(const Endpoint& at, const Call& call) const {
  const Signature& s = call.signature;
  const Reduction reduction{
      .dtype = s.dtype,
      .op = s.op,
      .ranks = at.size(),
      .scratch_bytes = tuning_.scratch_bytes,
      .kernel = core::reduce_kernel(s.dtype, s.op, core::Stores::kCached),
  };
  const Whole array = whole(call);
  switch (s.kind) {
    case Kind::kAllReduce:
      return is_short(s) ? gathered_all_reduce(at, reduction, array)
                         : scattered_all_reduce(at, reduction, array);
    case Kind::kReduce:
      return is_short(s) ? gathered_reduce(at, reduction, array, s.root)
                         : scattered_reduce(at, reduction, array, s.root);
    default:
      return pairwise_reduce_scatter(
          at, reduction, in_array(call), static_cast<std::byte*>(call.out));
  }
}

}  // namespace hocket::algorithm
