// All collectives over any PointToPoint. So every carrier of messages has all collectives from the
// start.
#pragma once

#include <cstddef>

#include "engine/engine.h"
#include "engine/point_to_point.h"
#include "engines/algorithm/algorithms.h"
#include "engines/algorithm/catalogue.h"
#include "engines/algorithm/cost_model.h"

namespace hocket::algorithm {

// The parameters for the choice of algorithms and the estimate of their times. A value, equal on
// all ranks.
struct Tuning {
  NetworkCosts network = kSharedMemory;
  // Reductions of floats are made in ascending rank order, which excludes some algorithms.
  bool ordered = true;
  // Algorithms to use in any case, even if `ordered` excludes them.
  Choices forced = {};
  // The kinds to carry: all kinds, or those that other engines leave.
  engine::KindSet kinds = engine::KindSet::where(engine::is_carried);
  // Approximate memory of a task, if lengths do not determine it.
  std::size_t scratch_bytes = 1024 * 1024;
  // Size of the chunks of pipelines.
  std::size_t chunk_bytes = 128 * 1024;

  Pieces pieces() const noexcept { return {.chunk = chunk_bytes, .scratch = scratch_bytes}; }
};

// Between hosts every long message sends a request first, so chunks are longer.
inline constexpr std::size_t kChunkAcross = 1024 * 1024;

// Returns the tuning of direct algorithms between hosts. The ranks of a host share its network
// port.
Tuning across_hosts(std::span<const int> hosts, const Choices& forced);

// See engine::CollectiveEngine. Supports host memory only; symmetric arrays are used as ordinary
// ones. Reductions use the accumulation type and round once, with every algorithm. With
// Tuning::ordered they are made in ascending rank order. Then the bits of a result depend neither
// on the carrier nor on the algorithm.
//
// The tags of messages contain the call's number and signature. The carrier must outlive the
// engine.
class AlgorithmEngine final : public engine::CollectiveEngine {
 public:
  AlgorithmEngine(engine::PointToPoint& carrier,
                  const engine::GroupFacts& facts,
                  const Tuning& tuning = {})
      : carrier_(carrier), facts_(facts), tuning_(tuning) {}

  std::string_view name() const noexcept override { return "algorithm"; }
  std::optional<engine::Score> score(const engine::Signature& signature) const noexcept override;
  engine::Task start(const engine::Call& call) override;

  // The algorithm for a call: the forced one, or the one with the lowest predicted time.
  struct Choice {
    Algorithm algorithm;
    double microseconds;
  };
  Choice choose(const engine::Signature& signature) const noexcept;

 private:
  struct Begun;
  struct Starts;  // one for each way

  engine::PointToPoint& carrier_;
  engine::GroupFacts facts_;
  Tuning tuning_;
};

}  // namespace hocket::algorithm
