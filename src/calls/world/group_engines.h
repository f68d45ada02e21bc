// The engines of a group, made from the job's engines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "calls/world/communicator_impl.h"
#include "calls/world/job_engines.h"

namespace hocket::world {

struct GroupShape {
  int size = 1;   // all members
  int local = 1;  // number of members on this host
  // True if there are members on other hosts, too.
  bool spans() const noexcept { return local != size; }
};
// Returns the bytes of the host's segment that a group needs.
std::size_t group_bytes(const JobEngines& engines, const GroupShape& shape);
// Writes an empty group into zeroed memory. `places` has each member's place; see
// control::HostView.
void format_group(std::byte* memory, std::span<const int> places, int local);

// Makes the engines of a group. `block` is the group's offset in the host's segment.
call::Engines make_engines(WorldImpl& world,
                           const call::Membership& membership,
                           control::GroupControl& control,
                           engine::Consistency& consistency,
                           std::uint64_t block);

}  // namespace hocket::world
