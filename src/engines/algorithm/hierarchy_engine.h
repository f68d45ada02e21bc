// Collectives on several hosts in levels: within each host, across hosts, and within each host
// again.
//
// Between hosts all data travels once, by *lanes*. A lane has one rank of every host and carries
// its share of the array. The smallest host's number of ranks is the number of lanes; short arrays
// use one lane. Any engine may work within a host.
//
//   host 0   r0   r1   r2      lane 0: r0, r3
//   host 1   r3   r4           lane 1: r1, r4
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "engine/engine.h"
#include "engine/point_to_point.h"
#include "engines/algorithm/algorithm_engine.h"
#include "engines/algorithm/host_map.h"
#include "engines/algorithm/subset.h"

namespace hocket::algorithm {

// The parameters. A value, equal on all ranks.
struct HierarchyTuning {
  Tuning within = {};
  Tuning across = {.network = kTcp, .ordered = false, .chunk_bytes = kChunkAcross};
  // Arrays up to this size use one lane.
  std::size_t short_bytes = 16 * 1024;
  // The collectives for which a direct algorithm is forced. This engine does not carry them.
  Choices straight = {};
};

// See engine::CollectiveEngine. Supports host memory, and groups of at least two hosts, at least
// one of them with two ranks, in any arrangement. It does not carry gather, scatter and
// all_to_all_v, because levels do not reduce their traffic between hosts. It carries all_to_all
// only for short parts. Reductions round once, and are not made in rank order.
//
// The carrier serves all ranks and must outlive the engine. `within` is an engine for this host's
// ranks, by local number. Absent: messages of the carrier.
class HierarchyEngine final : public engine::CollectiveEngine {
 public:
  HierarchyEngine(engine::PointToPoint& carrier,
                  const engine::GroupFacts& facts,
                  const HierarchyTuning& tuning = {},
                  std::unique_ptr<engine::CollectiveEngine> within = {});
  // Does the same with an existing map, which may be shared.
  HierarchyEngine(engine::PointToPoint& carrier,
                  std::shared_ptr<const HostMap> map,
                  int rank,
                  const HierarchyTuning& tuning = {},
                  std::unique_ptr<engine::CollectiveEngine> within = {});

  std::string_view name() const noexcept override { return "hierarchy"; }
  std::optional<engine::Score> score(const engine::Signature& signature) const noexcept override;
  engine::Task start(const engine::Call& call) override;

  // Returns the number of the call that a part's number belongs to. `within` gets parts.
  static std::uint64_t call_of(std::uint64_t part) noexcept;

 private:
  // The ranks of one host, or of one lane. A resource.
  struct Level {
    std::unique_ptr<Subset> carrier;  // null if another engine was given
    std::unique_ptr<engine::CollectiveEngine> engine;
    std::unique_ptr<engine::CollectiveEngine> alone;  // for a lane that works alone
    int rank = 0;
    int size = 1;
    std::uint64_t call = 0;   // the last call that had a part here
    std::uint64_t parts = 0;  // number of that call's parts so far
  };

  int lanes_for(std::size_t bytes) const noexcept {
    return bytes <= tuning_.short_bytes ? 1 : map_->fewest();
  }
  int host() const noexcept { return map_->host_of(rank_); }
  int local() const noexcept { return map_->local(rank_); }
  // Starts a part of `call` on a level. `sub` is complete except for its number.
  engine::Task on(Level& level, const engine::Call& call, engine::Call sub) {
    return on(level, *level.engine, call, sub);
  }
  // Does the same on this rank's lane, when `lanes` lanes work.
  engine::Task on_lane(int lanes, const engine::Call& call, engine::Call sub) {
    return on(*lane_, lanes == 1 ? *lane_->alone : *lane_->engine, call, sub);
  }
  engine::Task on(Level& level,
                  engine::CollectiveEngine& engine,
                  const engine::Call& call,
                  engine::Call sub);

  struct Costs;
  struct Ways;  // for each kind that it carries, its cost and its start function

  engine::Task barrier(engine::Call call);
  engine::Task broadcast(engine::Call call);
  engine::Task reduce(engine::Call call);
  engine::Task all_reduce(engine::Call call);
  engine::Task scan(engine::Call call);
  engine::Task reduce_scatter(engine::Call call);
  engine::Task all_gather(engine::Call call);
  engine::Task all_to_all(engine::Call call);
  // Returns the elements of all ranks' parts, for a call with parts.
  std::size_t total_of(const engine::Call& call) const noexcept;
  // Adds up `in` within the host. `out` gets this lane's share of the sum. Both are partial
  // results.
  engine::Task add_up_within(engine::Call call,
                             DType dtype,
                             ReduceOp op,
                             const std::byte* in,
                             std::byte* out,
                             std::span<const std::size_t> bytes);

  std::shared_ptr<const HostMap> map_;
  HierarchyTuning tuning_;
  int rank_;
  Level within_;
  std::optional<Level> lane_;  // absent on ranks without a lane
};

}  // namespace hocket::algorithm
