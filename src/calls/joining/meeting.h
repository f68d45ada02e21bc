// The meeting of a job's ranks: from ranks that know one address, to ranks that share memory.
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

// Returns the time in which all ranks must come.
Duration join_timeout(const InitOptions& options);

// Sets the parts that follow from this rank's options and settings alone: the engines (chosen from
// `providers`), algorithms, trace and audit. Throws InvalidArgument for unknown names. Throws
// SystemError if a trace or an audit cannot be written.
void heed_settings(world::WorldParts& parts,
                   const InitOptions& options,
                   const base::Config& config,
                   const engine::ProviderList& providers);

// Returns about `wanted` bytes of shared memory for each rank on this host. The result is at least
// enough for the world itself, and at most what the segment's counters can express.
std::size_t stripe_with_world(std::size_t wanted,
                              const world::JobEngines& engines,
                              const world::GroupShape& world);
// Returns the bytes of shared memory for each rank, from the options, the settings and this
// machine's memory.
std::size_t stripe_bytes(const InitOptions& options,
                         const base::Config& config,
                         const world::JobEngines& engines,
                         const world::GroupShape& world);
// `threads`: the ranks are threads of one process. Ordinary memory is then enough if no other
// process may look at it (HOCKET_TOP=0).
std::shared_ptr<os::Segment> make_segment(const control::HostShape& shape,
                                          const base::Config& config,
                                          bool threads);

// Returns the folder for audits of single communicators, if the job itself is not audited.
std::string audit_folder(const base::Config& config);

// Meets the other ranks at the store, and gets this host's shared memory. `server` is set if this
// rank serves the store already. Sets `attendance` once this rank has reached the store. Throws
// RendezvousError that names ranks which are missing, cannot join, or have other engines or
// algorithms. Throws SystemError, and Aborted if the user interrupts it.
world::WorldParts meet(const InitOptions& options,
                       const base::Config& config,
                       const engine::ProviderList& providers,
                       const LaunchInfo& launch,
                       base::Deadline deadline,
                       Attendance& attendance,
                       std::optional<StoreServer> server = {});

}  // namespace hocket::joining
