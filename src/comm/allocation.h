// Shared memory that ranks of a communicator allocate for each other, in one collective call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator_impl.h"

namespace hocket::comm {

// What this rank brings. A value.
struct Allocation {
  std::size_t bytes = 0;  // 0: nothing
  int holders = 0;        // ranks that will release it
  std::string what;       // for messages: "a group of 3"
  // Writes what others expect to find there.
  std::function<void(std::byte*)> format = {};
};

// Allocates and tells everybody: the offset of each rank's memory in the host's segment, 0 for
// those that brought none. Where a rank has no room, all ranks throw InvalidArgument and nobody
// holds anything.
std::vector<std::uint64_t> allocate_together(CommunicatorImpl& communicator,
                                             const engine::Signature& shown,
                                             const Allocation& own,
                                             std::optional<Duration> deadline);

}  // namespace hocket::comm
