// MPI's own collectives.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "engine/engine.h"
#include "engines/algorithm/algorithm_engine.h"
#include "engines/mpi/library.h"

namespace hocket::engines::mpi {

// What the other ranks have called under a number that this one refused. A value.
struct Elsewhere {
  bool known = false;                               // else ask again
  std::optional<engine::Signature> signature = {};  // absent: nothing that MPI carries
};

// See engine::CollectiveEngine. Host memory; every element type and operator, those that MPI lacks
// by hocket's own kernels. Reductions are rounded once, in whatever order MPI makes them.
//
// MPI cannot take back a call: so it never sees the arrays, but copies of them, and what is given
// up keeps its copies. As MPI does nothing unless it is called, whoever waits keeps asking it.
//
// Nor can it leave one out: the others have begun a call that this rank refused, and MPI would take
// its next one for that. So it makes up for it first, with what the others called and no data.
class MpiEngine final : public engine::CollectiveEngine {
 public:
  using Ask = std::function<Elsewhere(std::uint64_t sequence, bool given_up)>;
  // `ring`: wakes whoever waits on this rank, so that it asks again instead of sleeping.
  // `elsewhere`: of a number that this rank has not called by this engine.
  MpiEngine(std::shared_ptr<Comm> comm,
            const engine::GroupFacts& facts,
            std::function<void()> ring = {},
            Ask elsewhere = {})
      : comm_(std::move(comm)),
        facts_(facts),
        ring_(std::move(ring)),
        elsewhere_(std::move(elsewhere)) {}

  std::string_view name() const noexcept override { return kName; }
  std::optional<engine::Score> score(const engine::Signature& signature) const noexcept override;
  engine::Task start(const engine::Call& call) override;
  void skip(std::uint64_t sequence) override;

 private:
  engine::Task carry(engine::Call call);
  void make_up(std::uint64_t sequence, const engine::Signature& signature);

  std::shared_ptr<Comm> comm_;
  engine::GroupFacts facts_;
  std::function<void()> ring_;
  Ask elsewhere_;
  struct Skipped {
    std::uint64_t sequence = 0;
    bool given_up = false;  // called here by this engine, and ended before MPI had begun it
  };
  class Begun;
  void leave_out(Skipped skipped);
  std::deque<Skipped> skipped_;  // not made up for so far
};

}  // namespace hocket::engines::mpi
