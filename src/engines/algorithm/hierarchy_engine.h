// Collectives on several hosts in two levels: first within each host, then between hosts, then
// within each host again.
//
// All data travels between hosts only once, along *lanes*. A lane consists of one rank of every
// host and carries its share of the array. There are as many lanes as the smallest host has ranks.
// Short arrays use only one lane. Any engine may carry the calls within a host.
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

// The parameters of a HierarchyEngine. A value, equal on all ranks.
struct HierarchyTuning {
  Tuning within = {};
  Tuning across = {.network = kTcp, .ordered = false, .chunk_bytes = kChunkAcross};
  // Arrays up to this size in bytes use one lane.
  std::size_t short_bytes = 16 * 1024;
  // The algorithms that the user forces. They run directly between all ranks, so this engine does
  // not carry the collectives that have an entry here.
  Choices straight = {};
};

// See engine::CollectiveEngine. Supports host memory. The group must span at least two hosts, and
// at least one host must have two ranks. Any arrangement of ranks is supported, except that scans
// need consecutive ranks on each host. The engine does not carry gather, scatter and all_to_all_v,
// because two levels do not reduce their traffic between hosts. Its all_to_all is fast only for
// short parts. Reductions round once, and do not combine the data in rank order.
//
// The carrier connects all ranks and must outlive the engine. `within` is an engine for the ranks
// of this host, by local number. If it is null, the calls within a host use the carrier, too.
class HierarchyEngine final : public engine::CollectiveEngine {
 public:
  HierarchyEngine(engine::PointToPoint& carrier,
                  const engine::GroupFacts& facts,
                  const HierarchyTuning& tuning = {},
                  std::unique_ptr<engine::CollectiveEngine> within = {});
  // Uses an existing map, which several engines may share.
  HierarchyEngine(engine::PointToPoint& carrier,
                  std::shared_ptr<const HostMap> map,
                  int rank,
                  const HierarchyTuning& tuning = {},
                  std::unique_ptr<engine::CollectiveEngine> within = {});

  std::string_view name() const noexcept override { return "hierarchy"; }
  std::optional<engine::Score> score(const engine::Signature& signature) const noexcept override;
  engine::Task start(const engine::Call& call) override;

  // A call consists of several sub-calls on the levels, called *parts*, each with its own sequence
  // number. Returns the sequence number of the call to which the part with number `part` belongs.
  static std::uint64_t call_of(std::uint64_t part) noexcept;

 private:
  // The ranks of one host, or of one lane. A resource.
  struct Level {
    std::unique_ptr<Subset> carrier;  // null if the constructor got an engine for this level
    std::unique_ptr<engine::CollectiveEngine> engine;
    std::unique_ptr<engine::CollectiveEngine> alone;  // for calls that use only one lane
    int rank = 0;
    int size = 1;
    std::uint64_t call = 0;   // the last call that had a part on this level
    std::uint64_t parts = 0;  // number of parts of this call so far
  };

  int lanes_for(std::size_t bytes) const noexcept {
    return bytes <= tuning_.short_bytes ? 1 : map_->fewest();
  }
  int host() const noexcept { return map_->host_of(rank_); }
  int local() const noexcept { return map_->local(rank_); }
  // Starts a part of `call` on a level. `sub` is complete except for its sequence number.
  engine::Task on(Level& level, const engine::Call& call, engine::Call sub) {
    return on(level, *level.engine, call, sub);
  }
  // Starts a part of `call` on this rank's lane, in a call that uses `lanes` lanes.
  engine::Task on_lane(int lanes, const engine::Call& call, engine::Call sub) {
    return on(*lane_, lanes == 1 ? *lane_->alone : *lane_->engine, call, sub);
  }
  engine::Task on(Level& level,
                  engine::CollectiveEngine& engine,
                  const engine::Call& call,
                  engine::Call sub);

  struct Costs;
  struct Ways;  // for each kind that the engine carries, its cost and its start function

  engine::Task barrier(engine::Call call);
  engine::Task broadcast(engine::Call call);
  engine::Task reduce(engine::Call call);
  engine::Task all_reduce(engine::Call call);
  engine::Task scan(engine::Call call);
  engine::Task reduce_scatter(engine::Call call);
  engine::Task all_gather(engine::Call call);
  engine::Task all_to_all(engine::Call call);
  // Returns the number of elements in all ranks' parts, for a call with parts.
  std::size_t total_of(const engine::Call& call) const noexcept;
  // Reduces `in` within the host by a reduce_scatter. `out` gets this lane's share of the sum. Both
  // arrays hold partial results. `bytes` has the share of each local rank.
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
