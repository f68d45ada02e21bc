// Messages and collectives among those members of a group that share this host, when others are on
// other hosts.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "calls/world/communicator_impl.h"
#include "engine/provider.h"

namespace hocket::world {

// The members on this host. A value.
struct LocalMembers {
  int own = -1;              // this rank's number among them
  std::vector<int> members;  // the number in the group of each
  std::vector<int> places;   // of each; see control::HostControl
  std::vector<int> numbers;  // of each member of the group: its number among them, or -1
  int size() const noexcept { return static_cast<int>(members.size()); }
};
LocalMembers local_members_of(const call::Membership& membership);

struct Near {
  std::unique_ptr<engine::PointToPoint> messages;  // by numbers among the members on this host
  // Parts of the whole group's calls: the ranks' calls are compared where these meet. Null if the
  // engine has no collectives.
  std::unique_ptr<engine::CollectiveEngine> collectives;
};
// `whole` is the group that gets engines. `control` is the control part for this host's members, in
// the group's block; `memory` is the engine's part of the block.
Near make_near(control::HostControl& host,
               engine::Provider& provider,
               const engine::GroupSite& whole,
               const LocalMembers& local,
               std::byte* control,
               std::byte* memory);

}  // namespace hocket::world
