// From ranks that know which host each is on to hosts that hear of each other.
#pragma once

#include <string>
#include <vector>

#include "calls/world/world.h"
#include "foundation/base/config.h"
#include "foundation/base/deadline.h"
#include "hocket/store.h"

namespace hocket::joining {

// What they go by. A value; it refers to what its maker has.
struct ConnectOptions {
  const base::Config& config;
  const std::vector<std::string>& host_names;  // of each rank
};

// Makes `parts.network`, for jobs of several hosts, and has what carries messages between them join
// and meet: every rank's address goes through the store, the first ranks of the hosts connect, and
// all hear whether they could. Throws RendezvousError on all ranks where two hosts do not reach
// each other, or one lacks a library.
void connect_hosts(world::WorldParts& parts,
                   Store& store,
                   const ConnectOptions& options,
                   base::Deadline deadline);

}  // namespace hocket::joining
