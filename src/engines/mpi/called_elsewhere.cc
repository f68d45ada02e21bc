#include "engines/mpi/called_elsewhere.h"

#include "engine/made_of_calls.h"
#include "membership/control/group.h"

namespace hocket::engines::mpi {

using engine::Kind;

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

// Returns the MPI call that the other ranks made for a recorded call. A composed call consists of
// several calls under one record. Returns nothing if the record does not tell which of these calls
// it was.
std::optional<engine::Signature> as_made(const engine::Signature& recorded) {
  if (recorded.kind == Kind::kBarrier) return engine::Signature{.kind = Kind::kBarrier};
  if (is_listed(recorded.kind) && recorded.digest == engine::kMeetsAll) {
    const bool each = engine::swaps_parts(recorded.kind);
    return engine::Signature{.kind = each ? engine::regular_of(recorded.kind) : Kind::kAllGather,
                             .dtype = DType::kUInt64,
                             .count = 1};
  }
  if (!is_carried(recorded.kind)) return std::nullopt;
  return recorded;
}

// Returns whether MPI may have carried one of the calls that a composed call consists of.
bool may_be_carried_by_mpi(const std::vector<engine::CollectiveEngine*>& engines,
                           const engine::Signature& recorded) {
  return is_carried_by_mpi(engines, {.kind = Kind::kBarrier}) ||
         is_carried_by_mpi(engines,
                           {.kind = Kind::kAllGather, .dtype = DType::kUInt64, .count = 1}) ||
         is_carried_by_mpi(
             engines,
             {.kind = Kind::kAllGatherV, .dtype = recorded.dtype, .count = recorded.count});
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
    // Wait until every other rank has ended the call because of the refusal. If this rank made up
    // for the call earlier, its zeros could complete the call on the other ranks. The other ranks
    // would take the zeros for data.
    if (control.finished_sequence(rank) < sequence) return {};
    const auto theirs = control.find(rank, sequence);
    if (theirs && !theirs->refused) called = theirs->signature;
  }
  if (!called) return {.known = true};
  // These composed calls always use messages and never an engine of collectives.
  const engine::Made by = engine::made_of(called->kind, called->digest);
  if (by == engine::Made::kExtremes || by == engine::Made::kByOperator) return {.known = true};
  if (const auto made = as_made(*called)) {
    if (!is_carried_by_mpi(*site.rivals, *made)) return {.known = true};
    return {.known = true, .signature = made};
  }
  if (!may_be_carried_by_mpi(*site.rivals, *called)) return {.known = true};
  return {.known = true, .signature = called};
}

}  // namespace hocket::engines::mpi
