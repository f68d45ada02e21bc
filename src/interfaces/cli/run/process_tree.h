// Ends all processes that descend from this one.
#pragma once

#include <sys/types.h>

#include <vector>

namespace hocket::cli {

// Returns true if the process's end has begun: it is being killed, dumps core, or frees its memory.
// waitpid may not see its end yet. Returns false if the process is gone.
bool is_ending(pid_t pid);

// Returns all living descendants of `ancestor`, parents before children.
std::vector<pid_t> descendants_of(pid_t ancestor);

// Makes orphaned descendants of this process its children, so that none escapes.
void become_subreaper();

// Kills all descendants of this process with SIGKILL and reaps them, until there are none. In a
// subreaper, no process that was started below it survives this. Returns the number it killed.
int kill_descendants();

}  // namespace hocket::cli
