// Every collective over any PointToPoint: the floor that each carrier of messages has from the
// start.
#pragma once

#include <cstddef>

#include "engine/engine.h"
#include "engine/point_to_point.h"
#include "engines/algorithm/algorithms.h"
#include "engines/algorithm/catalogue.h"
#include "engines/algorithm/cost_model.h"

namespace hocket::algorithm {

// What the choice of algorithms and the estimate of their time go by. A value, equal on all ranks.
struct Tuning {
  NetworkCosts network = kSharedMemory;
  // Whether reductions of floats are made in ascending rank order, which rules some algorithms out.
  bool ordered = true;
  // Whatever they cost, these; also where `ordered` rules them out.
  Choices forced = {};
  // What it carries: all, or what other engines leave.
  engine::KindSet kinds = engine::KindSet::where(engine::is_carried);
  // Memory of a task, where lengths do not dictate it.
  std::size_t scratch_bytes = 1024 * 1024;
  // Of what pipelines are made of.
  std::size_t chunk_bytes = 128 * 1024;

  Pieces pieces() const noexcept { return {.chunk = chunk_bytes, .scratch = scratch_bytes}; }
};

// Between hosts each long message first asks whether it may come.
inline constexpr std::size_t kChunkAcross = 1024 * 1024;

// For straight algorithms between hosts: the ranks of a host share its way out.
Tuning across_hosts(std::span<const int> hosts, const Choices& forced);

// See engine::CollectiveEngine. Host memory only; symmetric arrays are taken as ordinary ones.
// Reductions are made in the accumulation type and rounded once, whatever the algorithm; where
// Tuning::ordered, in ascending rank order, so that the bits of a result depend neither on the
// carrier nor on the algorithm.
//
// Messages carry the call's number and signature in their tags. The carrier must outlive the
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

  // What is used for a call: the forced one, or the one that is predicted to take the least time.
  struct Choice {
    Algorithm algorithm;
    double microseconds;
  };
  Choice choose(const engine::Signature& signature) const noexcept;

 private:
  struct Begun;
  struct Starts;  // one a way

  engine::PointToPoint& carrier_;
  engine::GroupFacts facts_;
  Tuning tuning_;
};

}  // namespace hocket::algorithm
