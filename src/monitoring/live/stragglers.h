// Finds the rank for which a wait finally waits. This rank has not come to the call, and is not
// held up by others in an earlier call.
#pragma once

#include <vector>

#include "membership/control/group.h"
#include "membership/failure/inquiry.h"

namespace hocket::live {

// A value; members of the group, lowest first.
struct Stragglers {
  std::vector<int> members;  // empty: all have come, and none is seen to stand still
  // True if they have come and their processes stand still; false if they have not come.
  bool have_come = false;
  bool one_suffices = false;   // any of several members can end the wait: a receive from any rank
  std::uint64_t sequence = 0;  // the call that they hold up, which may be before the one that waits
};

// Costs a few loads a member. If all have come, the processes are checked, too.
Stragglers find_stragglers(control::GroupControl& group, const failure::Awaited& awaited);

// True if the process of the rank at `place` is on this host and stands still. It may be stopped,
// held by a debugger, or being written to a core file.
bool stands_still(const control::HostControl& host, int place);

}  // namespace hocket::live
