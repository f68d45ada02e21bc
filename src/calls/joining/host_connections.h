// Connects hosts: from ranks that know every rank's host, to hosts that exchange facts.
#pragma once

#include <string>
#include <vector>

#include "calls/world/world.h"
#include "foundation/base/config.h"
#include "foundation/base/deadline.h"
#include "hocket/store.h"

namespace hocket::joining {

// Settings for connecting. A value; refers to data of its maker.
struct ConnectOptions {
  const base::Config& config;
  const std::vector<std::string>& host_names;  // name of each rank's host
};

// Returns the ranks with which this rank exchanges test messages before the job begins. Both ranks
// of a pair get each other. All ranks of all hosts take part; with many hosts, only the first rank
// of each host.
std::vector<int> ranks_to_try(const std::vector<int>& hosts, int rank);

// Makes `parts.network` for jobs of several hosts, and connects the carrier of messages between the
// hosts. Every rank's address goes through the store.
// The first ranks of the hosts connect in both directions, and ranks of all hosts exchange
// messages. Then all ranks exchange their results. If two hosts do not reach each other, or one
// host lacks a library, all ranks throw RendezvousError.
void connect_hosts(world::WorldParts& parts,
                   Store& store,
                   const ConnectOptions& options,
                   base::Deadline deadline);

}  // namespace hocket::joining
