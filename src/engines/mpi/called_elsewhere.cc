#include "engines/mpi/called_elsewhere.h"

#include "control/group.h"

namespace hocket::engines::mpi {
namespace {

bool is_carried_by_mpi(const std::vector<engine::CollectiveEngine*>& engines,
                       const engine::Signature& signature) {
  const engine::CollectiveEngine* best = nullptr;
  double least = 0;
  for (const auto* engine : engines) {
    const auto score = engine->score(signature);
    if (!score || (best != nullptr && score->microseconds >= least)) continue;
    best = engine;
    least = score->microseconds;
  }
  return best != nullptr && best->name() == kName;
}

}  // namespace

Elsewhere called_elsewhere(const engine::GroupSite& site, std::uint64_t sequence, bool given_up) {
  const control::GroupControl& control = *site.control;
  const auto own = control.find(site.facts.rank, sequence);
  if (!own || !(own->refused || given_up)) return {.known = true};
  std::optional<engine::Signature> called;
  for (int rank = 0; rank < site.facts.size; ++rank) {
    if (rank == site.facts.rank) {
      if (!own->refused) called = own->signature;
      continue;
    }
    // Once all have heard of the refusal, and given the call up, nothing that is made up can be
    // taken for data.
    if (control.finished_sequence(rank) < sequence) return {};
    const auto theirs = control.find(rank, sequence);
    if (theirs && !theirs->refused) called = theirs->signature;
  }
  // A barrier has no more than that, whatever it is recorded with.
  if (called && called->kind == engine::Kind::kBarrier) called = {.kind = engine::Kind::kBarrier};
  if (called && !is_carried_by_mpi(*site.rivals, *called)) called.reset();
  return {.known = true, .signature = called};
}

}  // namespace hocket::engines::mpi
