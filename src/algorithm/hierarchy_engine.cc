#include "algorithm/hierarchy_engine.h"

#include <algorithm>
#include <utility>

#include "base/hash.h"

namespace hocket::algorithm {

using base::mix;
using engine::Call;
using engine::CollectiveEngine;
using engine::Kind;
using engine::Score;
using engine::Signature;
using engine::Task;

namespace {

// All lanes share their host's way out, so that to each of them a byte costs as much more.
Tuning of_lane(Tuning across, int lanes) {
  across.network.beta *= lanes;
  return across;
}

// Of one call on one level.
constexpr std::uint64_t kMostParts = 16;

// What tells parts of different calls apart that look alike.
std::uint64_t mark_of(const Call& call) noexcept {
  const Signature& s = call.signature;
  std::uint64_t hash = mix(base::kHashSeed, call.sequence);
  hash = mix(hash,
             static_cast<std::uint64_t>(s.kind) << 16 | static_cast<std::uint64_t>(s.dtype) << 8 |
                 static_cast<std::uint64_t>(s.op));
  hash = mix(hash, static_cast<std::uint64_t>(s.root));
  return mix(mix(hash, s.count), s.extra);
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

// The levels' times one after the other, of the host with the most ranks, as all must come to one
// result. What carries messages of the host's memory is taken to be AlgorithmEngine's model.
std::optional<Score> HierarchyEngine::score(const Signature& s) const noexcept {
  if (s.memory != MemoryKind::kHost || map_->hosts() < 2) return std::nullopt;
  if (map_->most() == 1) return std::nullopt;  // there is but one level
  if (tuning_.straight.of(s.kind)) return std::nullopt;
  const auto lanes = static_cast<std::uint64_t>(lanes_for(bytes_of(s)));
  const auto most = static_cast<std::uint64_t>(map_->most());
  const auto time = [&](const Tuning& tuning, int n, Kind kind, std::uint64_t count) {
    Signature part = s;
    part.kind = kind;
    part.count = count;
    double least = 0;
    for (const Way& way : ways_of(kind)) {
      const double us = predicted_us(way.algorithm, part, n, tuning.network, tuning.pieces());
      if (least == 0 || us < least) least = us;
    }
    return least;
  };
  const auto inside = [&](Kind kind, std::uint64_t count) {
    return time(tuning_.within, map_->most(), kind, count);
  };
  const auto outside = [&](Kind kind, std::uint64_t count) {
    return time(of_lane(tuning_.across, static_cast<int>(lanes)), map_->hosts(), kind, count);
  };
  const auto ranks = static_cast<std::uint64_t>(map_->ranks());
  const std::uint64_t share = s.count / lanes;
  switch (s.kind) {
    case Kind::kBarrier:
      return Score{2 * inside(Kind::kBarrier, 0) + outside(Kind::kBarrier, 0)};
    case Kind::kBroadcast:
      return Score{2 * inside(Kind::kAllGatherV, s.count) + outside(Kind::kBroadcast, share)};
    case Kind::kReduce:
      return Score{2 * inside(Kind::kReduceScatterV, s.count) + outside(Kind::kReduce, share)};
    case Kind::kAllReduce:
      return Score{inside(Kind::kReduceScatterV, s.count) + outside(Kind::kAllReduce, share) +
                   inside(Kind::kAllGatherV, s.count)};
    case Kind::kReduceScatter:
      return Score{inside(Kind::kReduceScatterV, s.count * ranks) +
                   outside(Kind::kReduceScatterV, s.count * ranks / lanes) +
                   inside(Kind::kAllGather, s.count)};
    case Kind::kReduceScatterV:
      return Score{inside(Kind::kReduceScatterV, s.count) + outside(Kind::kReduceScatterV, share) +
                   inside(Kind::kAllGatherV, s.count / static_cast<std::uint64_t>(map_->hosts()))};
    case Kind::kAllGather: {
      const auto lane = s.count * ranks / lanes;
      const auto hosts = static_cast<std::uint64_t>(map_->hosts());
      return Score{inside(Kind::kAllGather, s.count) +
                   (map_->is_even() ? outside(Kind::kAllGather, lane / hosts)
                                    : outside(Kind::kAllGatherV, lane)) +
                   inside(Kind::kAllGatherV, s.count * ranks)};
    }
    case Kind::kAllGatherV:
      return Score{2 * inside(Kind::kAllGatherV, s.count) + outside(Kind::kAllGatherV, share)};
    case Kind::kAllToAll:
      return Score{
          2 * inside(Kind::kGather, s.count * ranks) +
          outside(map_->is_even() ? Kind::kAllToAll : Kind::kAllToAllV, s.count * most * most)};
    default:
      return std::nullopt;
  }
}

Task HierarchyEngine::start(const Call& call) {
  switch (call.signature.kind) {
    case Kind::kBroadcast:
      return broadcast(call);
    case Kind::kReduce:
      return reduce(call);
    case Kind::kAllReduce:
      return all_reduce(call);
    case Kind::kReduceScatter:
    case Kind::kReduceScatterV:
      return reduce_scatter(call);
    case Kind::kAllGather:
    case Kind::kAllGatherV:
      return all_gather(call);
    case Kind::kAllToAll:
      return all_to_all(call);
    default:
      return barrier(call);
  }
}

// Parts are numbered by the call that they are of: a call that was refused, or that another engine
// has carried, has none on some ranks.
Task HierarchyEngine::on(Level& level, CollectiveEngine& engine, const Call& call, Call sub) {
  if (std::exchange(level.call, call.sequence) != call.sequence) level.parts = 0;
  sub.sequence = call.sequence * kMostParts + level.parts++;
  sub.fingerprint = mix(call.fingerprint, sub.sequence);
  engine.skip(sub.sequence - 1);
  sub.signature.extra = mark_of(call);
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
