#include "engines/algorithm/algorithm_engine.h"

#include <algorithm>
#include <limits>

#include "engines/algorithm/host_map.h"

namespace hocket::algorithm {

using engine::Call;
using engine::Kind;
using engine::Score;
using engine::Signature;
using engine::Task;

namespace {

// Bytes of a piece in an all-to-all. An all-to-all in place copies each piece to scratch memory,
// which fits into a second-level cache.
constexpr std::size_t kSwapBytes = 256 * 1024;
// A chunk size that is longer than any array, so that the array is a single chunk.
constexpr std::size_t kNoChunks = std::numeric_limits<std::size_t>::max() / 2;

// Returns the parts of a call: equal parts, or for v-forms the parts in `listed`.
Parts parts_of(const Call& call, const engine::PartsView& listed) {
  return is_listed(call.signature.kind) ? Parts::listed(listed)
                                        : Parts::equal(bytes_of(call.signature));
}

}  // namespace

Tuning across_hosts(std::span<const int> hosts, const Choices& forced) {
  Tuning tuning{.network = kTcp, .ordered = false, .forced = forced, .chunk_bytes = kChunkAcross};
  const HostMap map(hosts);
  tuning.network.beta_next = tuning.network.beta * map.most_crossings();
  tuning.network.beta *= map.most();
  return tuning;
}

// A call that begins: everything from which the arguments of an algorithm are made.
struct AlgorithmEngine::Begun {
  const Endpoint& at;
  const Call& call;
  const engine::GroupFacts& facts;
  const Tuning& tuning;

  int root() const noexcept { return call.signature.root; }
  std::size_t chunk() const noexcept { return tuning.chunk_bytes; }
  std::size_t swap() const noexcept { return std::min(tuning.scratch_bytes, kSwapBytes); }
  engine::Prefix prefix() const noexcept { return engine::row_of(call.signature.kind).prefix; }

  // Return the arrays of the call. `whole`: a complete array on each rank. `in_array`, `out_array`:
  // an array with a part for each rank. `own_in`, `own_out`: this rank's part alone.
  Whole whole() const { return {in(), out(), bytes_of(call.signature)}; }
  const std::byte* in() const { return static_cast<const std::byte*>(call.in); }
  std::byte* out() const { return static_cast<std::byte*>(call.out); }
  ConstArray in_array() const { return {in(), parts_of(call, call.in_parts)}; }
  Array out_array() const { return {out(), parts_of(call, call.out_parts)}; }
  std::span<const std::byte> own_in() const { return {in(), own_bytes(call)}; }
  std::span<std::byte> own_out() const { return {out(), own_bytes(call)}; }

  Reduction reduction() const {
    const Signature& s = call.signature;
    return {
        .dtype = s.dtype,
        .op = s.op,
        .ranks = engine::combined(s.kind, facts.rank, facts.size),
        .scratch_bytes = tuning.scratch_bytes,
        .chunk_bytes = tuning.chunk_bytes,
        .kernel = core::reduce_kernel(s.dtype, s.op, core::Stores::kCached),
    };
  }
};

struct AlgorithmEngine::Starts {
  using enum Kind;
  using enum Algorithm;
  using Start = Task (*)(const Begun&);
  static constexpr WayTable<Start> kOf{
      {{kBarrier}, kDissemination, [](const Begun& b) { return dissemination_barrier(b.at); }},

      {{kBroadcast},
       kBinomial,
       [](const Begun& b) {
         return tree_broadcast(b.at, b.whole(), b.root(), TreeShape::kBinomial, kNoChunks);
       }},
      {{kBroadcast},
       kScatterRing,
       [](const Begun& b) { return scatter_broadcast(b.at, b.whole(), b.root()); }},
      {{kBroadcast},
       kBinaryTree,
       [](const Begun& b) {
         return tree_broadcast(b.at, b.whole(), b.root(), TreeShape::kBinary, b.chunk());
       }},
      {{kBroadcast},
       kChain,
       [](const Begun& b) {
         return tree_broadcast(b.at, b.whole(), b.root(), TreeShape::kChain, b.chunk());
       }},

      {{kReduce},
       kGathered,
       [](const Begun& b) { return gathered_reduce(b.at, b.reduction(), b.whole(), b.root()); }},
      {{kReduce},
       kScattered,
       [](const Begun& b) { return scattered_reduce(b.at, b.reduction(), b.whole(), b.root()); }},
      {{kReduce},
       kBinomial,
       [](const Begun& b) {
         return tree_reduce(
             b.at, b.reduction(), b.whole(), b.root(), TreeShape::kBinomial, kNoChunks);
       }},
      {{kReduce},
       kBinaryTree,
       [](const Begun& b) {
         return tree_reduce(
             b.at, b.reduction(), b.whole(), b.root(), TreeShape::kBinary, b.chunk());
       }},
      {{kReduce},
       kChain,
       [](const Begun& b) {
         return tree_reduce(b.at, b.reduction(), b.whole(), b.root(), TreeShape::kChain, b.chunk());
       }},
      {{kReduce},
       kRabenseifner,
       [](const Begun& b) {
         return rabenseifner_reduce(b.at, b.reduction(), b.whole(), b.root());
       }},

      {{kAllReduce},
       kGathered,
       [](const Begun& b) { return gathered_all_reduce(b.at, b.reduction(), b.whole()); }},
      {{kAllReduce},
       kScattered,
       [](const Begun& b) { return scattered_all_reduce(b.at, b.reduction(), b.whole()); }},
      {{kAllReduce},
       kRecursiveDoubling,
       [](const Begun& b) { return doubling_all_reduce(b.at, b.reduction(), b.whole()); }},
      {{kAllReduce},
       kRabenseifner,
       [](const Begun& b) { return rabenseifner_all_reduce(b.at, b.reduction(), b.whole()); }},
      {{kAllReduce},
       kRing,
       [](const Begun& b) { return ring_all_reduce(b.at, b.reduction(), b.whole()); }},

      {{kScan, kExscan},
       kGathered,
       [](const Begun& b) { return gathered_scan(b.at, b.reduction(), b.whole()); }},
      {{kScan, kExscan},
       kChain,
       [](const Begun& b) { return chain_scan(b.at, b.reduction(), b.whole(), b.prefix()); }},
      {{kScan, kExscan},
       kRecursiveDoubling,
       [](const Begun& b) { return doubling_scan(b.at, b.reduction(), b.whole(), b.prefix()); }},

      {{kReduceScatter, kReduceScatterV},
       kPairwise,
       [](const Begun& b) {
         return pairwise_reduce_scatter(b.at, b.reduction(), b.in_array(), b.out());
       }},
      {{kReduceScatter, kReduceScatterV},
       kRecursiveHalving,
       [](const Begun& b) {
         return halving_reduce_scatter(b.at, b.reduction(), b.in_array(), b.out());
       }},
      {{kReduceScatter, kReduceScatterV},
       kRing,
       [](const Begun& b) {
         return ring_reduce_scatter(b.at, b.reduction(), b.in_array(), b.out());
       }},

      {{kAllGather},
       kBruck,
       [](const Begun& b) { return ordered_bruck_all_gather(b.at, b.own_in(), b.out()); }},
      {{kAllGather},
       kRecursiveDoubling,
       [](const Begun& b) { return doubling_all_gather(b.at, b.own_in(), b.out_array()); }},
      {{kAllGather, kAllGatherV},
       kDirect,
       [](const Begun& b) { return direct_all_gather(b.at, b.own_in(), b.out_array()); }},
      {{kAllGather, kAllGatherV},
       kRing,
       [](const Begun& b) { return ring_all_gather(b.at, b.own_in(), b.out_array()); }},

      {{kGather, kGatherV},
       kLinear,
       [](const Begun& b) { return linear_gather(b.at, b.own_in(), b.out_array(), b.root()); }},
      {{kGather},
       kBinomial,
       [](const Begun& b) { return binomial_gather(b.at, b.own_in(), b.out(), b.root()); }},

      {{kScatter, kScatterV},
       kLinear,
       [](const Begun& b) { return linear_scatter(b.at, b.in_array(), b.own_out(), b.root()); }},
      {{kScatter},
       kBinomial,
       [](const Begun& b) { return binomial_scatter(b.at, b.in(), b.own_out(), b.root()); }},

      {{kAllToAll, kAllToAllV},
       kPairwise,
       [](const Begun& b) {
         return b.call.in == b.call.out
                    ? in_place_all_to_all(b.at, b.out_array(), b.swap())
                    : pairwise_all_to_all(b.at, b.in_array(), b.out_array(), b.swap());
       }},
      {{kAllToAll},
       kBruck,
       [](const Begun& b) {
         return bruck_all_to_all(b.at, b.in(), b.out(), bytes_of(b.call.signature));
       }},
  };
};

// Returns the forced algorithm, or the cheapest one that Tuning::ordered allows, and its time. If a
// host has several ranks, HierarchyEngine competes with this engine. The engine with the lower
// score carries the call.
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
  if (s.memory != MemoryKind::kHost || !tuning_.kinds.has(s.kind)) return std::nullopt;
  return Score{choose(s).microseconds};
}

Task AlgorithmEngine::start(const Call& call) {
  const Endpoint at(carrier_, facts_, call);
  const Algorithm way = choose(call.signature).algorithm;
  return Starts::kOf.of(call.signature.kind, way)({at, call, facts_, tuning_});
}

}  // namespace hocket::algorithm
