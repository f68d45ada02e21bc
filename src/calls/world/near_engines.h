// Messages and collectives among the members of a group on this host, if the group has members on
// several hosts.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "calls/world/communicator_impl.h"
#include "engine/provider.h"

namespace hocket::world {

// The members on this host. A value.
struct LocalMembers {
  int own = -1;              // this rank's number among these members
  std::vector<int> members;  // their numbers in the group
  std::vector<int> places;   // the place of each member; see control::HostView
  std::vector<int> numbers;  // by member of the group: its number among the members here, or -1
  int size() const noexcept { return static_cast<int>(members.size()); }
};
LocalMembers local_members_of(const call::Membership& membership);

struct Near {
  std::unique_ptr<engine::PointToPoint> messages;  // ranks are numbers among the members here
  // Carries parts of the whole group's calls, and compares the calls of the ranks meanwhile. Null
  // if the engine has no collectives.
  std::unique_ptr<engine::CollectiveEngine> collectives;
};
// `whole` describes the whole group. `control` is the control part for this host's members, in the
// group's block; `memory` is the engine's part of the block.
Near make_near(control::HostControl& host,
               engine::Provider& provider,
               const engine::GroupSite& whole,
               const LocalMembers& local,
               std::byte* control,
               std::byte* memory);

}  // namespace hocket::world
