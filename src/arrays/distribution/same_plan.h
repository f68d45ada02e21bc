// Checks that all ranks are about to execute the same plan.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "calls/world/array_calls.h"
#include "hocket/communicator.h"

namespace hocket::distribution {

// A resource of one plan, used by one thread.
class SamePlan {
 public:
  // `kind` is the call that refusals name.
  SamePlan(Communicator& comm, engine::Kind kind)
      : comm_(comm), kind_(kind), given_(static_cast<std::size_t>(comm.size())) {}

  // Collective. Runs `prepare()`, this rank's preparation, whose errors refuse the call. Then
  // compares `digest()`, a hash of the plan and of all that must be equal. If the digests differ,
  // throws InvalidArgument on all ranks; the communicator stays usable.
  template <typename Prepare, typename Digest>
  void before_executing(std::optional<Duration> deadline, Prepare&& prepare, Digest&& digest) {
    world::before_call(comm_, kind_, prepare);
    compare(digest(), deadline);
  }

 private:
  void compare(std::uint64_t digest, std::optional<Duration> deadline);

  Communicator& comm_;
  const engine::Kind kind_;
  std::vector<std::uint64_t> given_;  // by rank
};

}  // namespace hocket::distribution
