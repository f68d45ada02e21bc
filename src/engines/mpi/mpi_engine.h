// MPI's own collectives.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "algorithm/algorithm_engine.h"
#include "engine/engine.h"
#include "engines/mpi/library.h"

namespace hocket::engines::mpi {

// See engine::CollectiveEngine. Host memory; every element type and operator, those that MPI lacks
// by hocket's own kernels. Reductions are rounded once, in whatever order MPI makes them.
//
// MPI cannot take back a call: so it never sees the arrays, but copies of them, and what is given
// up keeps its copies. As MPI does nothing unless it is called, whoever waits keeps asking it.
class MpiEngine final : public engine::CollectiveEngine {
 public:
  // `ring`: wakes whoever waits on this rank, so that it asks again instead of sleeping.
  MpiEngine(std::shared_ptr<Comm> comm,
            const engine::GroupFacts& facts,
            std::function<void()> ring = {})
      : comm_(std::move(comm)), facts_(facts), ring_(std::move(ring)) {}

  std::string_view name() const noexcept override { return "mpi"; }
  std::optional<engine::Score> score(const engine::Signature& signature) const noexcept override;
  engine::Task start(const engine::Call& call) override;

 private:
  engine::Task carry(engine::Call call);

  std::shared_ptr<Comm> comm_;
  engine::GroupFacts facts_;
  std::function<void()> ring_;
};

}  // namespace hocket::engines::mpi
