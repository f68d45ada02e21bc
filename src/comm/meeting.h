// From ranks that know one address to ranks that share memory.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "base/config.h"
#include "base/deadline.h"
#include "comm/world.h"
#include "hocket/group.h"
#include "os/segment.h"

namespace hocket::comm {

// The time for all ranks to come.
Duration join_timeout(const InitOptions& options);

// Shared memory of one rank of `ranks`, as the options, the settings and this machine allow.
std::size_t stripe_bytes(const InitOptions& options, const base::Config& config, int ranks);
// `threads`: ordinary memory will do.
std::shared_ptr<os::Segment> make_segment(const control::HostShape& shape, bool threads);

// Meets the others at the store, which `server` is where this rank serves it already, and gets this
// host's shared memory. Throws RendezvousError naming
// who is missing, SystemError, and Aborted where the user interrupts it.
WorldParts meet(const InitOptions& options,
                const base::Config& config,
                const LaunchInfo& launch,
                base::Deadline deadline,
                std::optional<StoreServer> server = {});

}  // namespace hocket::comm
