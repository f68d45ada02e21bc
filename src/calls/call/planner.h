// Makes plans from requests: the call in the engines' form, and the engine that carries it.
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

// The engines that carry a group's calls.
struct Engines {
  std::vector<std::unique_ptr<engine::CollectiveEngine>> collectives;  // best first on ties
  std::unique_ptr<engine::PointToPoint> messages;
};

// A checked call, and data that follows from its signature. A value.
struct Plan {
  engine::Call call;
  engine::CollectiveEngine* engine = nullptr;
  std::uint64_t hash = 0;  // for the fingerprint; see Ledger::hash_of
};

// A resource of one group's rank. In the communicator's turn.
class Planner {
 public:
  // `reaches_all`: every member reaches this host's segment, so that symmetric arrays can be
  // recognized by their addresses.
  Planner(std::string communicator,
          RankAndSize place,
          const control::HostControl& host,
          bool reaches_all)
      : communicator_(std::move(communicator)),
        place_(place),
        host_(host),
        reaches_all_(reaches_all) {}

  const RankAndSize& place() const noexcept { return place_; }
  // Call it before the first plan. The engines must outlive this.
  void set_engines(const Engines& engines) noexcept { engines_ = &engines; }

  // `shown` is the signature for the records, if it is not the call's own. `like` is the plan of an
  // earlier call; with the same signature, its engine is used. Throws InvalidArgument.
  Plan plan(const Request& request,
            CallStorage& storage,
            const engine::Signature* shown = nullptr,
            const Plan* like = nullptr);
  // The best engine for the signature. Throws InvalidArgument if no engine carries it.
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
