// From a request to a plan: the call as engines want it, and who carries it. Kept, so that a call
// that is repeated is planned once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "call/request.h"
#include "engine/choices.h"
#include "engine/engine.h"
#include "engine/point_to_point.h"
#include "os/segment.h"

namespace hocket::control {
class HostControl;
}

namespace hocket::call {

// What a group's calls are carried by.
struct Engines {
  std::vector<std::unique_ptr<engine::CollectiveEngine>> collectives;  // best first on ties
  std::unique_ptr<engine::PointToPoint> messages;
};

// A call that has been checked, and what follows from its signature. A value.
struct Plan {
  engine::Call call;
  engine::CollectiveEngine* engine = nullptr;
  std::uint64_t hash = 0;  // what the fingerprint takes in; see Ledger::hash_of
};

// A value: the plans of the last requests, of a few kinds. Programs repeat themselves, and what was
// right is right again. In the communicator's turn.
template <typename AnyPlan>
class KeptPlans {
 public:
  // The plan of the last request of its kind; null where this is not the same again.
  AnyPlan* find(const Request& request) noexcept {
    Kept& kept = kept_[place_of(request)];
    return repeats(kept.request, request) ? &kept.plan : nullptr;
  }
  // Keeps a plan, which is another place's from now on.
  AnyPlan& keep(const Request& request, AnyPlan plan) noexcept {
    Kept& kept = kept_[place_of(request)];
    kept.request = request;
    kept.plan = std::move(plan);
    return kept.plan;
  }
  void forget() noexcept {
    for (Kept& kept : kept_) kept = {};
  }

 private:
  struct Kept {
    Request request;
    AnyPlan plan;
  };
  std::size_t place_of(const Request& request) const noexcept {
    return static_cast<std::size_t>(request.kind) % kept_.size();
  }

  std::array<Kept, 4> kept_;
};

// A resource of one group's rank. In the communicator's turn.
class Planner {
 public:
  // `reaches_all`: every member reaches this host's segment, so that symmetric arrays can be known
  // by their addresses.
  Planner(std::string communicator,
          RankAndSize place,
          const control::HostControl& host,
          bool reaches_all)
      : communicator_(std::move(communicator)),
        place_(place),
        host_(host),
        reaches_all_(reaches_all) {}

  const RankAndSize& place() const noexcept { return place_; }
  // Which outlive this, and must be set before the first plan.
  void set_engines(const Engines& engines) noexcept { engines_ = &engines; }

  // `shown`: what the records say, where that is not the call itself. Throws InvalidArgument.
  Plan plan(const Request& request, CallStorage& storage, const engine::Signature* shown);
  // The best engine for it. Throws InvalidArgument where none carries it.
  engine::CollectiveEngine& choose(const engine::Signature& signature);

  KeptPlans<Plan>& kept() noexcept { return kept_; }

 private:
  void find_symmetric(engine::Call& call) const noexcept;

  const std::string communicator_;
  const RankAndSize place_;
  const control::HostControl& host_;
  const bool reaches_all_;
  const Engines* engines_ = nullptr;
  engine::ChoiceMemo<engine::CollectiveEngine*> choices_;
  KeptPlans<Plan> kept_;
};

}  // namespace hocket::call
