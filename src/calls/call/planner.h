// From a request to a plan: the call as engines want it, and who carries it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "calls/call/request.h"
#include "engine/engine.h"
#include "engine/point_to_point.h"
#include "foundation/os/segment.h"

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

  // `shown`: what the records say, where that is not the call itself. `like`: the plan of a call
  // before; where that has the same signature, its engine is right here too. Throws
  // InvalidArgument.
  Plan plan(const Request& request,
            CallStorage& storage,
            const engine::Signature* shown = nullptr,
            const Plan* like = nullptr);
  // The best engine for it. Throws InvalidArgument where none carries it.
  engine::CollectiveEngine& choose(const engine::Signature& signature) const;

 private:
  void find_symmetric(engine::Call& call) const noexcept;

  const std::string communicator_;
  const RankAndSize place_;
  const control::HostControl& host_;
  const bool reaches_all_;
  const Engines* engines_ = nullptr;
};

}  // namespace hocket::call
