// From ranks that know one address to ranks that share memory.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "calls/joining/attendance.h"
#include "calls/world/world.h"
#include "foundation/base/config.h"
#include "foundation/base/deadline.h"
#include "foundation/os/segment.h"
#include "hocket/group.h"

namespace hocket::joining {

// The time for all ranks to come.
Duration join_timeout(const InitOptions& options);

// Fills in what the options and settings of this rank come to alone: engines, out of `providers`,
// algorithms, trace.
// Throws InvalidArgument for what there is not, SystemError where no trace can be written.
void heed_settings(world::WorldParts& parts,
                   const InitOptions& options,
                   const base::Config& config,
                   const engine::ProviderList& providers);

// About `wanted` bytes of shared memory for each rank here: room for the world itself at least, and
// no more than can be counted for all of them.
std::size_t stripe_with_world(std::size_t wanted,
                              const world::JobEngines& engines,
                              const world::GroupShape& world);
// The same, as the options, the settings and this machine allow.
std::size_t stripe_bytes(const InitOptions& options,
                         const base::Config& config,
                         const world::JobEngines& engines,
                         const world::GroupShape& world);
// `threads`: the ranks are those of one process, so that where nobody is to look at them
// (HOCKET_TOP=0) ordinary memory will do.
std::shared_ptr<os::Segment> make_segment(const control::HostShape& shape, bool threads);

// Where audits lie that communicators want while the job has none.
std::string audit_folder(const base::Config& config);

// Meets the others at the store, which `server` is where this rank serves it already, and gets this
// host's shared memory. `attendance` is this rank's from then on. Throws RendezvousError naming who
// is missing, or cannot join, or is to use other engines or algorithms; SystemError; and Aborted
// where the user interrupts it.
world::WorldParts meet(const InitOptions& options,
                       const base::Config& config,
                       const engine::ProviderList& providers,
                       const LaunchInfo& launch,
                       base::Deadline deadline,
                       Attendance& attendance,
                       std::optional<StoreServer> server = {});

}  // namespace hocket::joining
