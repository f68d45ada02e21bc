// Finds the ranks that cause a wait: they have not come to the call, and are not held up themselves
// in an earlier call.
#pragma once

#include <vector>

#include "membership/control/group.h"
#include "membership/failure/inquiry.h"

namespace hocket::live {

// The ranks that cause a wait, and the call that they hold up. A value.
struct Stragglers {
  // Ranks in the group, ascending. Empty if all have come and no process is seen to be stopped.
  std::vector<int> members;
  // True if they have come and their processes are stopped; false if they have not come.
  bool have_come = false;
  bool one_suffices = false;   // any of several members can end the wait: a receive from any rank
  std::uint64_t sequence = 0;  // the call that they hold up; may precede the waiting call
};

// Costs a few loads per member. If all have come, it also looks at their processes' states.
Stragglers find_stragglers(control::GroupControl& group, const failure::Awaited& awaited);

// True if the process of the rank at `place` is on this host and stands still. It may be stopped,
// held by a debugger, or being written to a core file.
bool stands_still(const control::Liveness& liveness, int place);

}  // namespace hocket::live
