#include "calls/call/planner.h"

#include <fmt/format.h>

#include "calls/call/ledger.h"
#include "membership/control/host/memory.h"

namespace hocket::call {

using engine::Signature;

Plan Planner::plan(const Request& request,
                   CallStorage& storage,
                   const Signature* shown,
                   const Plan* like) {
  Plan plan{.call = check(request, place_, storage)};
  find_symmetric(plan.call);
  const Signature& signature = plan.call.signature;
  const bool is_like =
      like != nullptr && like->engine != nullptr && like->call.signature == signature;
  plan.engine = is_like ? like->engine : &choose(signature);
  plan.hash = Ledger::hash_of(shown == nullptr ? signature : *shown);
  return plan;
}

engine::CollectiveEngine& Planner::choose(const Signature& signature) const {
  engine::CollectiveEngine* best = nullptr;
  double least = 0;
  for (const auto& candidate : engines_->collectives) {
    const auto score = candidate->score(signature);
    if (!score || (best != nullptr && score->microseconds >= least)) continue;
    best = candidate.get();
    least = score->microseconds;
  }
  if (best == nullptr) {
    std::string names;
    for (const auto& engine : engines_->collectives) {
      if (!names.empty()) names += ", ";
      names += engine->name();
    }
    throw InvalidArgument(fmt::format(
        "no engine of communicator {} carries {}: it has {}; join with more engines, or split the "
        "array",
        communicator_,
        engine::describe(signature),
        names));
  }
  return *best;
}

// Recognizes symmetric arrays by their addresses, because no other arrays lie in the host's
// segment.
void Planner::find_symmetric(engine::Call& call) const noexcept {
  const auto reachable = [this](const void* address) {
    return address != nullptr && memory_.contains(address);
  };
  call.signature.symmetric = 0;
  if (!reaches_all_) return;
  bool symmetric = false;
  const engine::KindRow& row = engine::row_of(call.signature.kind);
  switch (row.reach) {
    case engine::Reach::kNone:
      break;
    case engine::Reach::kInAndOut:
      symmetric = reachable(call.in) && reachable(call.out);
      break;
    case engine::Reach::kIn:
      symmetric = reachable(call.in);
      break;
    case engine::Reach::kOut:  // all ranks have one; the other ranks read the root's
      symmetric = reachable(call.out);
      break;
  }
  call.signature.symmetric = symmetric && call.signature.count != 0 ? 1 : 0;
}

}  // namespace hocket::call
