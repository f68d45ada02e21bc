// For those members of a group that share this host, where others are elsewhere: messages and
// collectives among them.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "calls/world/communicator_impl.h"
#include "engine/provider.h"

namespace hocket::world {

// A value.
struct Mates {
  int own = -1;              // this rank's number among them
  std::vector<int> members;  // the number in the group of each
  std::vector<int> places;   // of each; see control::HostControl
  std::vector<int> numbers;  // of each member of the group: its number among them, or -1
  int size() const noexcept { return static_cast<int>(members.size()); }
};
Mates mates_of(const call::Membership& membership);

struct Near {
  std::unique_ptr<engine::PointToPoint> messages;  // by numbers among the mates
  // Parts of the calls of the whole group: what each rank has called is compared where these meet.
  // Null where the engine has no collectives of its own.
  std::unique_ptr<engine::CollectiveEngine> collectives;
};
// `whole`: the group as it is to have engines. `control`: of the mates, in the group's block;
// `memory`: the engine's part of that.
Near make_near(control::HostControl& host,
               engine::Provider& provider,
               const engine::GroupSite& whole,
               const Mates& mates,
               std::byte* control,
               std::byte* memory);

}  // namespace hocket::world
