// Facts about other processes of this host.
#pragma once

#include <sys/types.h>

#include <string>

namespace hocket::os {

// Returns the pid of the parent of process `pid`. 0 if it is unknown.
pid_t process_parent(pid_t pid) noexcept;

// Describes how a process ended, as a text that follows its name: "was killed by SIGKILL (Killed)",
// "exited with code 1". `status` is that of waitpid, or kReplaced.
std::string describe_end(int status);

}  // namespace hocket::os
