// Ranks that join a running job.
//
//     members                                    newcomer
//     world = admit(world.communicator(), ...)   World world = init({.join = address});
//
// Newcomers wait at the job's door, an address. Members take them in by a collective call, after a
// rank has died or at any time. The result is a new world of members and newcomers, with memory,
// connections and engines of its own.
#pragma once

#include <optional>
#include <string>

#include "hocket/communicator.h"
#include "hocket/group.h"
#include "hocket/types.h"

namespace hocket {

struct AdmitOptions {
  // The most newcomers that are taken in; 0: none.
  int newcomers = 1;
  // How long to wait until so many have come. 0: only those that wait already. Absent: 10 s.
  std::optional<Duration> patience = {};
  // True: members keep their ranks in the world, and newcomers get the empty ones, then new ones. A
  // member whose rank is beyond the new size gets an empty one. False: members come first, in
  // order.
  bool keep_ranks = true;
  // For members that are alive but do not call `admit`; see Communicator::rebuild.
  RebuildOptions rebuild = {};
};

// Takes newcomers into the job. Collective over `members`, of which some may have died, as for
// Communicator::rebuild. Fewer newcomers than asked for, and newcomers or members that die
// meanwhile, are no error: see World::launch and LaunchInfo::newcomers for who has come.
//
// `members` becomes what `rebuild` returns, also if the call fails. Its world goes on until it is
// closed. GPU arrays and symmetric memory stay with the world that made them.
// @param members The communicator whose ranks go on. All have the same options.
// @param options See AdmitOptions.
// @return The new world: the same members on all ranks.
// @throws InvalidArgument on all ranks for options that cannot be, for ranks that are threads, and
//   if the door cannot be opened.
// @throws RendezvousError if the members cannot meet in a new world; the message says why.
// @throws What Communicator::rebuild throws.
World admit(Communicator& members, const AdmitOptions& options = {});

// Returns the address of a job's door from its name (HOCKET_JOB), for newcomers of the same host
// and user. A text with a colon is an address already.
std::string door_address(const std::string& job);

}  // namespace hocket
