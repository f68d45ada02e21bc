// MPI's own collectives as an engine.
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

// The MPI call that the other ranks made under a number for which this rank made no MPI call. This
// rank refused the call, or ended it before MPI began it. A value.
struct Elsewhere {
  bool known = false;                               // false: not known yet; ask again
  std::optional<engine::Signature> signature = {};  // absent: MPI did not carry the call
};

// See engine::CollectiveEngine. It supports host memory, and all element types and operators.
// hocket's kernels compute the operators that MPI lacks. Reductions round once, in the order that
// MPI chooses.
//
// MPI cannot cancel a call. So MPI gets copies of the arrays, and an abandoned call keeps its
// copies. MPI makes progress only while it is called, so a waiting thread polls MPI.
//
// MPI cannot skip a call either. If this rank refuses a call that the other ranks have begun, MPI
// would match this rank's next call with the refused call. So before its next call, this rank makes
// up for the refused call: it makes the same call as the other ranks, with zeros as data.
class MpiEngine final : public engine::CollectiveEngine {
 public:
  using Ask = std::function<Elsewhere(std::uint64_t sequence, bool given_up)>;
  // `ring` wakes the waiting threads of this rank, so that they poll instead of sleeping.
  // `elsewhere` returns the MPI call that the other ranks made under a number; see Elsewhere.
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
    bool given_up = false;  // this engine started the call, but it ended before MPI had begun it
  };
  class Begun;
  void leave_out(Skipped skipped);
  std::deque<Skipped> skipped_;  // calls that this rank still has to make up for
};

}  // namespace hocket::engines::mpi
