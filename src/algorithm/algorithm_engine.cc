#include "algorithm/algorithm_engine.h"

#include <algorithm>
#include <limits>

#include "algorithm/host_map.h"

namespace hocket::algorithm {

using engine::Call;
using engine::Kind;
using engine::Score;
using engine::Signature;
using engine::Task;

namespace {

// What an all-to-all in place copies aside at a time; stays in a second-level cache.
constexpr std::size_t kSwapBytes = 256 * 1024;
// Of a chunk that no array is longer than.
constexpr std::size_t kNoChunks = std::numeric_limits<std::size_t>::max() / 2;

Whole whole(const Call& call) {
  return {static_cast<const std::byte*>(call.in),
          static_cast<std::byte*>(call.out),
          bytes_of(call.signature)};
}

// The arrays of a call whose parts are of one length or, in the v-forms, listed.
Parts parts_of(const Call& call, const engine::PartsView& listed) {
  return is_listed(call.signature.kind) ? Parts::listed(listed)
                                        : Parts::equal(bytes_of(call.signature));
}
ConstArray in_array(const Call& call) {
  return {static_cast<const std::byte*>(call.in), parts_of(call, call.in_parts)};
}
Array out_array(const Call& call) {
  return {static_cast<std::byte*>(call.out), parts_of(call, call.out_parts)};
}

// A rank's single part, of `in` or of `out`.
std::span<const std::byte> own_in(const Call& call) {
  return {static_cast<const std::byte*>(call.in), own_bytes(call)};
}
std::span<std::byte> own_out(const Call& call) {
  return {static_cast<std::byte*>(call.out), own_bytes(call)};
}

}  // namespace

Tuning across_hosts(std::span<const int> hosts, const Choices& forced) {
  Tuning tuning{.network = kTcp, .ordered = false, .forced = forced, .chunk_bytes = kChunkAcross};
  const HostMap map(hosts);
  tuning.network.beta_next = tuning.network.beta * map.most_crossings();
  tuning.network.beta *= map.most();
  return tuning;
}

struct AlgorithmEngine::Starts {
  using Start = Task (AlgorithmEngine::*)(const Endpoint&, const Call&, Algorithm) const;
  static constexpr engine::KindTable<Start> kOf{
      {Kind::kBarrier, &AlgorithmEngine::start_barrier},
      {Kind::kBroadcast, &AlgorithmEngine::start_broadcast},
      {Kind::kReduce, &AlgorithmEngine::start_reduce},
      {Kind::kAllReduce, &AlgorithmEngine::start_all_reduce},
      {Kind::kScan, &AlgorithmEngine::start_scan},
      {Kind::kExscan, &AlgorithmEngine::start_scan},
      {Kind::kReduceScatter, &AlgorithmEngine::start_reduce_scatter},
      {Kind::kAllGather, &AlgorithmEngine::start_all_gather},
      {Kind::kGather, &AlgorithmEngine::start_gather},
      {Kind::kScatter, &AlgorithmEngine::start_scatter},
      {Kind::kAllToAll, &AlgorithmEngine::start_all_to_all},
      {Kind::kReduceScatterV, &AlgorithmEngine::start_reduce_scatter},
      {Kind::kAllGatherV, &AlgorithmEngine::start_all_gather},
      {Kind::kGatherV, &AlgorithmEngine::start_gather},
      {Kind::kScatterV, &AlgorithmEngine::start_scatter},
      {Kind::kAllToAllV, &AlgorithmEngine::start_all_to_all},
  };
  static constexpr engine::KindSet kCarries = kOf.kinds();
};

AlgorithmEngine::Choice AlgorithmEngine::choose(const Signature& s) const noexcept {
  const auto forced = tuning_.forced.of(s.kind);
  const bool only_ordered = tuning_.ordered && order_matters(s);
  std::optional<Choice> best;
  for (const Way& way : ways_of(s.kind)) {
    if (forced ? way.algorithm != *forced : only_ordered && !way.ordered) continue;
    const double time =
        predicted_us(way.algorithm, s, facts_.size, tuning_.network, tuning_.pieces());
    if (!best || time < best->microseconds) best = Choice{way.algorithm, time};
  }
  return best.value_or(Choice{Algorithm::kDissemination, 0});
}

std::optional<Score> AlgorithmEngine::score(const Signature& s) const noexcept {
  if (s.memory != MemoryKind::kHost || !Starts::kCarries.has(s.kind)) return std::nullopt;
  return Score{choose(s).microseconds};
}

Task AlgorithmEngine::start(const Call& call) {
  const Endpoint at(carrier_, facts_, call);
  const Algorithm way =
      chosen_.of(call.signature, [this](const Signature& s) { return choose(s).algorithm; });
  return (this->*Starts::kOf[call.signature.kind])(at, call, way);
}

Task AlgorithmEngine::start_barrier(const Endpoint& at, const Call&, Algorithm) const {
  return dissemination_barrier(at);
}

Task AlgorithmEngine::start_gather(const Endpoint& at, const Call& call, Algorithm way) const {
  const int root = call.signature.root;
  return way == Algorithm::kBinomial
             ? binomial_gather(at, own_in(call), static_cast<std::byte*>(call.out), root)
             : linear_gather(at, own_in(call), out_array(call), root);
}

Task AlgorithmEngine::start_scatter(const Endpoint& at, const Call& call, Algorithm way) const {
  const int root = call.signature.root;
  return way == Algorithm::kBinomial
             ? binomial_scatter(at, static_cast<const std::byte*>(call.in), own_out(call), root)
             : linear_scatter(at, in_array(call), own_out(call), root);
}

Task AlgorithmEngine::start_broadcast(const Endpoint& at, const Call& call, Algorithm way) const {
  const Whole array = whole(call);
  const int root = call.signature.root;
  switch (way) {
    case Algorithm::kScatterRing:
      return scatter_broadcast(at, array, root);
    case Algorithm::kBinaryTree:
      return tree_broadcast(at, array, root, TreeShape::kBinary, tuning_.chunk_bytes);
    case Algorithm::kChain:
      return tree_broadcast(at, array, root, TreeShape::kChain, tuning_.chunk_bytes);
    default:
      return tree_broadcast(at, array, root, TreeShape::kBinomial, kNoChunks);
  }
}

Task AlgorithmEngine::start_all_gather(const Endpoint& at, const Call& call, Algorithm way) const {
  switch (way) {
    case Algorithm::kBruck:
      return ordered_bruck_all_gather(at, own_in(call), static_cast<std::byte*>(call.out));
    case Algorithm::kRecursiveDoubling:
      return doubling_all_gather(at, own_in(call), out_array(call));
    case Algorithm::kDirect:
      return direct_all_gather(at, own_in(call), out_array(call));
    default:
      return ring_all_gather(at, own_in(call), out_array(call));
  }
}

Task AlgorithmEngine::start_all_to_all(const Endpoint& at, const Call& call, Algorithm way) const {
  if (way == Algorithm::kBruck) {
    return bruck_all_to_all(at,
                            static_cast<const std::byte*>(call.in),
                            static_cast<std::byte*>(call.out),
                            bytes_of(call.signature));
  }
  const std::size_t scratch = std::min(tuning_.scratch_bytes, kSwapBytes);
  if (call.in == call.out) return in_place_all_to_all(at, out_array(call), scratch);
  return pairwise_all_to_all(at, in_array(call), out_array(call), scratch);
}

Reduction AlgorithmEngine::reduction_of(const Signature& s) const {
  return {
      .dtype = s.dtype,
      .op = s.op,
      .ranks = engine::combined(s.kind, facts_.rank, facts_.size),
      .scratch_bytes = tuning_.scratch_bytes,
      .chunk_bytes = tuning_.chunk_bytes,
      .kernel = core::reduce_kernel(s.dtype, s.op, core::Stores::kCached),
  };
}

Task AlgorithmEngine::start_reduce(const Endpoint& at, const Call& call, Algorithm way) const {
  const Reduction reduction = reduction_of(call.signature);
  const Whole array = whole(call);
  const int root = call.signature.root;
  switch (way) {
    case Algorithm::kBinomial:
      return tree_reduce(at, reduction, array, root, TreeShape::kBinomial, kNoChunks);
    case Algorithm::kBinaryTree:
      return tree_reduce(at, reduction, array, root, TreeShape::kBinary, tuning_.chunk_bytes);
    case Algorithm::kChain:
      return tree_reduce(at, reduction, array, root, TreeShape::kChain, tuning_.chunk_bytes);
    case Algorithm::kRabenseifner:
      return rabenseifner_reduce(at, reduction, array, root);
    case Algorithm::kScattered:
      return scattered_reduce(at, reduction, array, root);
    default:
      return gathered_reduce(at, reduction, array, root);
  }
}

Task AlgorithmEngine::start_all_reduce(const Endpoint& at, const Call& call, Algorithm way) const {
  const Reduction reduction = reduction_of(call.signature);
  const Whole array = whole(call);
  switch (way) {
    case Algorithm::kRing:
      return ring_all_reduce(at, reduction, array);
    case Algorithm::kRecursiveDoubling:
      return doubling_all_reduce(at, reduction, array);
    case Algorithm::kRabenseifner:
      return rabenseifner_all_reduce(at, reduction, array);
    case Algorithm::kScattered:
      return scattered_all_reduce(at, reduction, array);
    default:
      return gathered_all_reduce(at, reduction, array);
  }
}

Task AlgorithmEngine::start_scan(const Endpoint& at, const Call& call, Algorithm way) const {
  const Reduction reduction = reduction_of(call.signature);
  const Whole array = whole(call);
  const engine::Prefix prefix = engine::row_of(call.signature.kind).prefix;
  if (way == Algorithm::kChain) return chain_scan(at, reduction, array, prefix);
  if (way == Algorithm::kRecursiveDoubling) return doubling_scan(at, reduction, array, prefix);
  return gathered_scan(at, reduction, array);
}

Task AlgorithmEngine::start_reduce_scatter(const Endpoint& at,
                                           const Call& call,
                                           Algorithm way) const {
  const Reduction reduction = reduction_of(call.signature);
  auto* out = static_cast<std::byte*>(call.out);
  switch (way) {
    case Algorithm::kRing:
      return ring_reduce_scatter(at, reduction, in_array(call), out);
    case Algorithm::kRecursiveHalving:
      return halving_reduce_scatter(at, reduction, in_array(call), out);
    default:
      return pairwise_reduce_scatter(at, reduction, in_array(call), out);
  }
}

}  // namespace hocket::algorithm
