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
class HostMemory;
}

namespace hocket::call {

// The engines that carry a group's calls.
struct Engines {
  std::vector<std::unique_ptr<engine::CollectiveEngine>> collectives;  // the first wins on ties
  std::unique_ptr<engine::PointToPoint> messages;
};

// A checked call, and data that follows from its signature. A value.
struct Plan {
  engine::Call call;
  engine::CollectiveEngine* engine = nullptr;
  std::uint64_t hash = 0;  // for the fingerprint; see Ledger::hash_of
};

// A resource of one rank of a group, used in the communicator's turn.
class Planner {
 public:
  // `reaches_all`: every member reaches this host's segment, so that symmetric arrays can be
  // recognized by their addresses.
  Planner(std::string communicator,
          RankAndSize place,
          const control::HostMemory& memory,
          bool reaches_all)
      : communicator_(std::move(communicator)),
        place_(place),
        memory_(memory),
        reaches_all_(reaches_all) {}

  const RankAndSize& place() const noexcept { return place_; }
  // Call it before the first plan. The engines must outlive this.
  void set_engines(const Engines& engines) noexcept { engines_ = &engines; }

  // `shown` is the signature for the records, if it is not the call's own. `like` is the plan of an
  // earlier call: if the signatures are equal, its engine is used again. Throws InvalidArgument.
  Plan plan(const Request& request,
            CallStorage& storage,
            const engine::Signature* shown = nullptr,
            const Plan* like = nullptr);
  // Returns the engine with the best score for the signature. Throws InvalidArgument if no engine
  // carries it.
  engine::CollectiveEngine& choose(const engine::Signature& signature) const;

 private:
  void find_symmetric(engine::Call& call) const noexcept;

  const std::string communicator_;
  const RankAndSize place_;
  const control::HostMemory& memory_;
  const bool reaches_all_;
  const Engines* engines_ = nullptr;
};

}  // namespace hocket::call
