#include "engines/algorithm/hierarchy_engine.h"

#include <algorithm>
#include <utility>

#include "foundation/base/hash.h"

namespace hocket::algorithm {

using base::mix;
using engine::Call;
using engine::CollectiveEngine;
using engine::Kind;
using engine::Score;
using engine::Signature;
using engine::Task;

namespace {

// Returns the tuning of one lane. All lanes share the network port of their host, so the cost of a
// byte is multiplied by the number of lanes.
Tuning of_lane(Tuning across, int lanes) {
  across.network.beta *= lanes;
  return across;
}

// Maximum number of parts of one call on one level.
constexpr std::uint64_t kMostParts = 16;

// Returns a hash of a call. It distinguishes parts with equal signatures that belong to different
// calls.
std::uint64_t mark_of(const Call& call) noexcept {
  const Signature& s = call.signature;
  std::uint64_t hash = mix(base::kHashSeed, call.sequence);
  hash = mix(hash,
             static_cast<std::uint64_t>(s.kind) << 16 | static_cast<std::uint64_t>(s.dtype) << 8 |
                 static_cast<std::uint64_t>(s.op));
  hash = mix(hash, static_cast<std::uint64_t>(s.root));
  return mix(mix(hash, s.count), s.digest);
}

}  // namespace

HierarchyEngine::HierarchyEngine(engine::PointToPoint& carrier,
                                 const engine::GroupFacts& facts,
                                 const HierarchyTuning& tuning,
                                 std::unique_ptr<engine::CollectiveEngine> within)
    : HierarchyEngine(carrier,
                      std::make_shared<const HostMap>(facts.hosts),
                      facts.rank,
                      tuning,
                      std::move(within)) {}

HierarchyEngine::HierarchyEngine(engine::PointToPoint& carrier,
                                 std::shared_ptr<const HostMap> map,
                                 int rank,
                                 const HierarchyTuning& tuning,
                                 std::unique_ptr<engine::CollectiveEngine> within)
    : map_(std::move(map)), tuning_(tuning), rank_(rank) {
  const auto& neighbours = map_->members(host());
  within_.rank = local();
  within_.size = static_cast<int>(neighbours.size());
  within_.engine = std::move(within);
  if (!within_.engine) {
    within_.carrier = std::make_unique<Subset>(carrier, neighbours);
    const engine::GroupFacts inside{.rank = within_.rank, .size = within_.size, .hosts = {}};
    within_.engine = std::make_unique<AlgorithmEngine>(*within_.carrier, inside, tuning.within);
  }
  if (local() >= map_->fewest()) return;
  lane_.emplace();
  lane_->rank = host();
  lane_->size = map_->hosts();
  lane_->carrier = std::make_unique<Subset>(carrier, map_->lane(local()));
  const engine::GroupFacts outside{.rank = lane_->rank, .size = lane_->size, .hosts = {}};
  const auto make = [&](int lanes) {
    return std::make_unique<AlgorithmEngine>(
        *lane_->carrier, outside, of_lane(tuning.across, lanes));
  };
  lane_->engine = make(map_->fewest());
  lane_->alone = make(1);
}

// Predicts the times of a call's parts on each level, each with its fastest algorithm. In
// microseconds.
struct HierarchyEngine::Costs {
  const HierarchyTuning& tuning;
  const HostMap& map;
  const Signature& s;
  std::uint64_t lanes;

  double inside(Kind kind, std::uint64_t count) const {
    return time(tuning.within, map.most(), kind, count);
  }
  double outside(Kind kind, std::uint64_t count) const {
    return time(of_lane(tuning.across, static_cast<int>(lanes)), map.hosts(), kind, count);
  }
  std::uint64_t share() const { return s.count / lanes; }
  std::uint64_t hosts() const { return static_cast<std::uint64_t>(map.hosts()); }
  std::uint64_t most() const { return static_cast<std::uint64_t>(map.most()); }
  // Returns the number of elements in all ranks' shares.
  std::uint64_t all() const { return s.count * static_cast<std::uint64_t>(map.ranks()); }

 private:
  double time(const Tuning& level, int n, Kind kind, std::uint64_t count) const {
    Signature part = s;
    part.kind = kind;
    part.count = count;
    return least_predicted_us(part, n, level.network, level.pieces());
  }
};

// The cost and the start function of each kind. A cost is the sum of the times on both levels. All
// ranks must get the same sum, so it is computed for the host with the most ranks. The calls within
// a host are estimated as if AlgorithmEngine carried them.
struct HierarchyEngine::Ways {
  using Cost = double (*)(const Costs&);
  using Start = Task (HierarchyEngine::*)(Call);
  struct OfKind {
    Cost cost;
    Start start;
  };

  static double barrier(const Costs& c) {
    return 2 * c.inside(Kind::kBarrier, 0) + c.outside(Kind::kBarrier, 0);
  }
  static double broadcast(const Costs& c) {
    return 2 * c.inside(Kind::kAllGatherV, c.s.count) + c.outside(Kind::kBroadcast, c.share());
  }
  static double reduce(const Costs& c) {
    return 2 * c.inside(Kind::kReduceScatterV, c.s.count) + c.outside(Kind::kReduce, c.share());
  }
  static double all_reduce(const Costs& c) {
    return c.inside(Kind::kReduceScatterV, c.s.count) + c.outside(Kind::kAllReduce, c.share()) +
           c.inside(Kind::kAllGatherV, c.s.count);
  }
  static double scan(const Costs& c) {
    return c.inside(c.s.kind, c.s.count) + c.inside(Kind::kReduceScatterV, c.s.count) +
           c.outside(Kind::kExscan, c.share()) + c.inside(Kind::kAllGatherV, c.s.count);
  }
  static double reduce_scatter(const Costs& c) {
    return c.inside(Kind::kReduceScatterV, c.all()) +
           c.outside(Kind::kReduceScatterV, c.all() / c.lanes) +
           c.inside(Kind::kAllGather, c.s.count);
  }
  static double reduce_scatter_v(const Costs& c) {
    return c.inside(Kind::kReduceScatterV, c.s.count) +
           c.outside(Kind::kReduceScatterV, c.share()) +
           c.inside(Kind::kAllGatherV, c.s.count / c.hosts());
  }
  static double all_gather(const Costs& c) {
    const std::uint64_t lane = c.all() / c.lanes;
    return c.inside(Kind::kAllGather, c.s.count) +
           (c.map.is_even() ? c.outside(Kind::kAllGather, lane / c.hosts())
                            : c.outside(Kind::kAllGatherV, lane)) +
           c.inside(Kind::kAllGatherV, c.all());
  }
  static double all_gather_v(const Costs& c) {
    return 2 * c.inside(Kind::kAllGatherV, c.s.count) + c.outside(Kind::kAllGatherV, c.share());
  }
  static double all_to_all(const Costs& c) {
    const Kind kind = c.map.is_even() ? c.s.kind : engine::listed_of(c.s.kind);
    return 2 * c.inside(Kind::kGather, c.all()) + c.outside(kind, c.s.count * c.most() * c.most());
  }

  static constexpr engine::KindTable<OfKind> kOf{
      {Kind::kBarrier, {&barrier, &HierarchyEngine::barrier}},
      {Kind::kBroadcast, {&broadcast, &HierarchyEngine::broadcast}},
      {Kind::kReduce, {&reduce, &HierarchyEngine::reduce}},
      {Kind::kAllReduce, {&all_reduce, &HierarchyEngine::all_reduce}},
      {Kind::kScan, {&scan, &HierarchyEngine::scan}},
      {Kind::kExscan, {&scan, &HierarchyEngine::scan}},
      {Kind::kReduceScatter, {&reduce_scatter, &HierarchyEngine::reduce_scatter}},
      {Kind::kReduceScatterV, {&reduce_scatter_v, &HierarchyEngine::reduce_scatter}},
      {Kind::kAllGather, {&all_gather, &HierarchyEngine::all_gather}},
      {Kind::kAllGatherV, {&all_gather_v, &HierarchyEngine::all_gather}},
      {Kind::kAllToAll, {&all_to_all, &HierarchyEngine::all_to_all}},
  };
  static constexpr engine::KindSet kCarries = kOf.kinds();
};

std::optional<Score> HierarchyEngine::score(const Signature& s) const noexcept {
  if (s.memory != MemoryKind::kHost || map_->hosts() < 2) return std::nullopt;
  if (map_->most() == 1) return std::nullopt;  // there is only one level
  if (!Ways::kCarries.has(s.kind) || tuning_.straight.of(s.kind)) return std::nullopt;
  if (is_prefix(s.kind) && !map_->is_in_order()) return std::nullopt;
  const auto lanes = static_cast<std::uint64_t>(lanes_for(bytes_of(s)));
  return Score{Ways::kOf[s.kind].cost({tuning_, *map_, s, lanes})};
}

Task HierarchyEngine::start(const Call& call) {
  return (this->*Ways::kOf[call.signature.kind].start)(call);
}

// A part's number is computed from the number of its call, and not counted. The reason: a call that
// was refused, or that another engine carried, has no parts on some ranks. `skip` tells the engine
// about the numbers that are left out.
Task HierarchyEngine::on(Level& level, CollectiveEngine& engine, const Call& call, Call sub) {
  if (std::exchange(level.call, call.sequence) != call.sequence) level.parts = 0;
  sub.sequence = call.sequence * kMostParts + level.parts++;
  sub.fingerprint = mix(call.fingerprint, sub.sequence);
  engine.skip(sub.sequence - 1);
  sub.signature.digest = mark_of(call);
  return engine.start(sub);
}

std::size_t HierarchyEngine::total_of(const Call& call) const noexcept {
  const Signature& s = call.signature;
  return is_listed(s.kind) ? s.count : s.count * static_cast<std::size_t>(map_->ranks());
}

std::uint64_t HierarchyEngine::call_of(std::uint64_t part) noexcept { return part / kMostParts; }

Task HierarchyEngine::barrier(Call call) {
  const Call sub{.signature = {.kind = Kind::kBarrier}};
  co_await on(within_, call, sub);
  if (lane_ && local() == 0) co_await on_lane(1, call, sub);
  co_await on(within_, call, sub);
}

}  // namespace hocket::algorithm
