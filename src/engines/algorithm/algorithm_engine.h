// An engine that carries all collectives over any PointToPoint. So every carrier of messages
// supports all collectives without further code.
#pragma once

#include <cstddef>

#include "engine/engine.h"
#include "engine/point_to_point.h"
#include "engines/algorithm/algorithms.h"
#include "engines/algorithm/catalogue.h"
#include "engines/algorithm/cost_model.h"

namespace hocket::algorithm {

// The parameters by which the engine chooses an algorithm and estimates its time. A value, equal on
// all ranks.
struct Tuning {
  NetworkCosts network = kSharedMemory;
  // Whether reductions of floats combine the data in ascending rank order. This excludes some
  // algorithms.
  bool ordered = true;
  // The algorithms to use without regard to costs and to `ordered`.
  Choices forced = {};
  // The kinds to carry: all kinds, or the kinds that no other engine carries.
  engine::KindSet kinds = engine::KindSet::where(engine::is_carried);
  // Approximate memory of a task in bytes, for algorithms that may choose their memory.
  std::size_t scratch_bytes = 1024 * 1024;
  // Bytes of a chunk in algorithms that work as a pipeline.
  std::size_t chunk_bytes = 128 * 1024;

  Pieces pieces() const noexcept { return {.chunk = chunk_bytes, .scratch = scratch_bytes}; }
};

// Bytes of a chunk between hosts. It is longer than within a host, because every long message
// between hosts costs a request.
inline constexpr std::size_t kChunkAcross = 1024 * 1024;

// Returns the tuning for algorithms that run directly between all ranks of several hosts. It takes
// into account that the ranks of a host share its network port.
Tuning across_hosts(std::span<const int> hosts, const Choices& forced);

// See engine::CollectiveEngine. Supports host memory only, and uses symmetric arrays like ordinary
// arrays. With every algorithm, reductions use the accumulation type and round once. With
// Tuning::ordered they also combine the data in ascending rank order. Then the bits of a result
// are the same for every carrier and every algorithm.
//
// The tag of a message contains the call's number and a hash of its signature. The carrier must
// outlive the engine.
class AlgorithmEngine final : public engine::CollectiveEngine {
 public:
  AlgorithmEngine(engine::PointToPoint& carrier,
                  const engine::GroupFacts& facts,
                  const Tuning& tuning = {})
      : carrier_(carrier), facts_(facts), tuning_(tuning) {}

  std::string_view name() const noexcept override { return "algorithm"; }
  std::optional<engine::Score> score(const engine::Signature& signature) const noexcept override;
  engine::Task start(const engine::Call& call) override;

  // The algorithm for a call: the forced algorithm, or the one with the lowest predicted time.
  struct Choice {
    Algorithm algorithm;
    double microseconds;
  };
  Choice choose(const engine::Signature& signature) const noexcept;

 private:
  struct Begun;
  struct Starts;  // the table of start functions, one for each Way

  engine::PointToPoint& carrier_;
  engine::GroupFacts facts_;
  Tuning tuning_;
};

}  // namespace hocket::algorithm
