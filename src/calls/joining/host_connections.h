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
  const std::vector<std::string>& host_names;  // of each rank
};

// Returns the ranks to which this one tries the way of messages before the job stands. They try the
// way to it, too. All ranks of all hosts have part, or the first of each host, where those are
// many.
std::vector<int> ranks_to_try(const std::vector<int>& hosts, int rank);

// Makes `parts.network` for jobs of several hosts, and connects the carrier of messages between
// them. Every rank's address goes through the store. The first ranks of the hosts connect, in both
// directions, and ranks of all hosts exchange messages. Then all ranks exchange their results. If
// two hosts do not reach each other, or one lacks a library, all ranks throw RendezvousError.
void connect_hosts(world::WorldParts& parts,
                   Store& store,
                   const ConnectOptions& options,
                   base::Deadline deadline);

}  // namespace hocket::joining
