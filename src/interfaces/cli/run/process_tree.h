// Ending processes that were started by processes that this one started.
#pragma once

#include <sys/types.h>

#include <vector>

namespace hocket::cli {

// A process whose end has begun (it is being killed, dumps core, or frees its memory) but which
// may not be reapable yet. False also where it is gone.
bool is_ending(pid_t pid);

// All descendants of `ancestor` that are alive, parents before children.
std::vector<pid_t> descendants_of(pid_t ancestor);

// Makes orphans below this process its children, so that none escapes.
void become_subreaper();

// Kills all descendants of this process with SIGKILL and reaps them; again until there are none.
// For a subreaper: then nothing that was started below it survives. Returns how many it killed.
int kill_descendants();

}  // namespace hocket::cli
