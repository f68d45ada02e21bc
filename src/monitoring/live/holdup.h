// Whom a wait of one rank waits for in the end: the rank that has not come to the call, and is in no
// earlier one that others hold up.
#pragma once

#include <vector>

#include "membership/control/group.h"
#include "membership/failure/inquiry.h"

namespace hocket::live {

// A value; members of the group, lowest first.
struct Holdup {
  std::vector<int> members;  // nobody: all have come, and none is seen to stand still
  // They have come, and their processes stand still; else they have not come.
  bool have_come = false;
  bool one_suffices = false;   // any of several members can end the wait: a receive from any rank
  std::uint64_t sequence = 0;  // the call that they hold up, which may be before the one waited in
};

// A few loads a member, but where all have come: then the processes are looked at, too.
Holdup find_holdup(control::GroupControl& group, const failure::Awaited& awaited);

// Whether the process of the rank at `place` is of this host and stands still: stopped, held by a
// debugger, or its memory being written to a file.
bool stands_still(const control::HostControl& host, int place);

}  // namespace hocket::live
