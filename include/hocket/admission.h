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
  // The largest number of newcomers to take in. 0: none.
  int newcomers = 1;
  // The time to wait for that many newcomers. 0: take only those that wait already. Absent: 10 s.
  std::optional<Duration> patience = {};
  // True: members keep their ranks. Newcomers first get the ranks of lost members, then ranks
  // behind the last one. A member whose rank lies beyond the new size also gets a lost member's
  // rank. False: ranks are numbered anew, members first, in their order.
  bool keep_ranks = true;
  // How to treat members that are alive but do not call `admit`; see Communicator::rebuild.
  RebuildOptions rebuild = {};
};

// Takes newcomers into the job. Collective over `members`, some of which may have died, as with
// Communicator::rebuild. The new world may have fewer newcomers than asked for. Newcomers or
// members that die during the call are left out without an error. World::launch tells who has come:
// see LaunchInfo::newcomers.
//
// Afterwards `members` is the communicator that Communicator::rebuild returns, even if this call
// fails. Its world stays open until it is closed. GPU arrays and symmetric memory stay with the
// world that made them.
// @param members The communicator whose ranks go on. All ranks pass the same options.
// @param options See AdmitOptions.
// @return The new world, with the same members on all ranks.
// @throws InvalidArgument on all ranks for invalid options, for ranks that are threads, and if the
//   door cannot be opened.
// @throws RendezvousError if the members cannot meet in a new world; the message says why.
// @throws The errors of Communicator::rebuild.
World admit(Communicator& members, const AdmitOptions& options = {});

// Returns the address of a job's door. `job` is the job's name (HOCKET_JOB), for newcomers of the
// same host and user. A text with a colon is an address already, and is returned unchanged.
std::string door_address(const std::string& job);

}  // namespace hocket
