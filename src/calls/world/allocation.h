// Shared memory that ranks of a communicator allocate for each other, in one collective call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "calls/world/communicator_impl.h"

namespace hocket::world {

// The allocation that this rank contributes. A value.
struct Allocation {
  std::size_t bytes = 0;          // 0: nothing
  std::vector<int> holders = {};  // places that will release it; see HostMemory::allocate
  std::string what = {};          // for error texts: "a group of 3"
  // Writes the initial content that the holders expect.
  std::function<void(std::byte*)> format = {};
  // For a group between hosts: lists the memory for the network. The network is one of the holders,
  // and releases it when the group's members have closed it. Returns null if no place became free
  // in time.
  std::function<control::GroupEntry*(std::uint64_t block, Duration patience)> enlist = {};
};

// Allocates memory and tells all ranks: the offset of each rank's memory in its host's segment, 0
// for ranks that contributed none. If a rank has no room, or no place in the list, all ranks throw
// InvalidArgument and nothing stays allocated.
std::vector<std::uint64_t> allocate_together(CommunicatorImpl& communicator,
                                             const engine::Signature& shown,
                                             const Allocation& own,
                                             std::optional<Duration> deadline);

}  // namespace hocket::world
