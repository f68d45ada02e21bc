// Collectives of several hosts in levels: within each host, across hosts, within each host.
//
// Between hosts everything travels once: by *lanes*, each of which has one rank of every host and
// carries its share of the array. There are as many as the host with the fewest ranks has, or one
// for what is short. Within a host any engine will do.
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

// A value, equal on all ranks.
struct HierarchyTuning {
  Tuning within = {};
  Tuning across = {.network = kTcp, .ordered = false, .chunk_bytes = kChunkAcross};
  // Arrays up to here go by one lane.
  std::size_t short_bytes = 16 * 1024;
  // Collectives for which a straight algorithm is forced, and that are left to it.
  Choices straight = {};
};

// See engine::CollectiveEngine. Host memory; groups of at least two hosts, one of which has two
// ranks, wherever these are. It has no gather, scatter and all_to_all_v, which between hosts move
// the same bytes without it, and all_to_all pays for short parts alone. Reductions are rounded
// once, and not made in rank order.
//
// The carrier, for all ranks, must outlive it. `within`: an engine for this host's ranks, by their
// local numbers; absent: messages of the carrier.
class HierarchyEngine final : public engine::CollectiveEngine {
 public:
  HierarchyEngine(engine::PointToPoint& carrier,
                  const engine::GroupFacts& facts,
                  const HierarchyTuning& tuning = {},
                  std::unique_ptr<engine::CollectiveEngine> within = {});
  // The same for who has a map already, which may be shared.
  HierarchyEngine(engine::PointToPoint& carrier,
                  std::shared_ptr<const HostMap> map,
                  int rank,
                  const HierarchyTuning& tuning = {},
                  std::unique_ptr<engine::CollectiveEngine> within = {});

  std::string_view name() const noexcept override { return "hierarchy"; }
  std::optional<engine::Score> score(const engine::Signature& signature) const noexcept override;
  engine::Task start(const engine::Call& call) override;

  // The number of the call that has a part of this number: `within` is given parts.
  static std::uint64_t call_of(std::uint64_t part) noexcept;

 private:
  // The ranks of one host, or of one lane. A resource.
  struct Level {
    std::unique_ptr<Subset> carrier;  // null where another engine was given
    std::unique_ptr<engine::CollectiveEngine> engine;
    std::unique_ptr<engine::CollectiveEngine> alone;  // of a lane, where the others rest
    int rank = 0;
    int size = 1;
    std::uint64_t call = 0;   // the last of which it had a part
    std::uint64_t parts = 0;  // of that call
  };

  int lanes_for(std::size_t bytes) const noexcept {
    return bytes <= tuning_.short_bytes ? 1 : map_->fewest();
  }
  int host() const noexcept { return map_->host_of(rank_); }
  int local() const noexcept { return map_->local(rank_); }
  // Starts a part of `call` on a level; `sub` has everything but its number.
  engine::Task on(Level& level, const engine::Call& call, engine::Call sub) {
    return on(level, *level.engine, call, sub);
  }
  // The same on this rank's lane, of `lanes` that work.
  engine::Task on_lane(int lanes, const engine::Call& call, engine::Call sub) {
    return on(*lane_, lanes == 1 ? *lane_->alone : *lane_->engine, call, sub);
  }
  engine::Task on(Level& level,
                  engine::CollectiveEngine& engine,
                  const engine::Call& call,
                  engine::Call sub);

  struct Costs;
  struct Ways;  // for each kind that it carries, its cost and one of these

  engine::Task barrier(engine::Call call);
  engine::Task broadcast(engine::Call call);
  engine::Task reduce(engine::Call call);
  engine::Task all_reduce(engine::Call call);
  engine::Task scan(engine::Call call);
  engine::Task reduce_scatter(engine::Call call);
  engine::Task all_gather(engine::Call call);
  engine::Task all_to_all(engine::Call call);
  // Elements of all ranks' parts, of a call that has parts.
  std::size_t total_of(const engine::Call& call) const noexcept;
  // The lanes' shares of the host's sum of `in`, of this lane in `out`; both partial results.
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
  std::optional<Level> lane_;  // of the ranks that have one
};

}  // namespace hocket::algorithm
