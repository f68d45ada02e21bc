// Every collective over any PointToPoint: the floor that each carrier of messages has from the
// start.
#pragma once

#include <cstddef>

#include "algorithm/algorithms.h"
#include "engine/engine.h"
#include "engine/point_to_point.h"

namespace hocket::algorithm {

// What the choice of algorithms and the estimate of their time go by. A value, equal on all ranks.
struct Tuning {
  double round_us = 1.0;         // for a message to arrive, however short
  double bytes_per_us = 10'000;  // what a rank sends or receives
  // What a rank receives in a call, up to where few rounds matter more than few bytes.
  std::size_t short_bytes = 64 * 1024;
  // Memory of a task, where lengths do not dictate it.
  std::size_t scratch_bytes = 1024 * 1024;
};

// See engine::CollectiveEngine. Host memory only; symmetric arrays are taken as ordinary ones.
// Reductions are made in ascending rank order, in the accumulation type, rounded once: the bits of
// a result depend neither on the carrier nor on the algorithm chosen.
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

 private:
  // Whether the algorithm of few rounds is taken, as far as there are two.
  bool is_short(const engine::Signature& signature) const noexcept;
  engine::Task start_broadcast(const Endpoint& at, const engine::Call& call) const;
  engine::Task start_all_gather(const Endpoint& at, const engine::Call& call) const;
  engine::Task start_all_to_all(const Endpoint& at, const engine::Call& call) const;
  engine::Task start_reduction(const Endpoint& at, const engine::Call& call) const;

  engine::PointToPoint& carrier_;
  engine::GroupFacts facts_;
  Tuning tuning_;
};

}  // namespace hocket::algorithm
