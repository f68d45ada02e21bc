// Plain facts about other processes of this host.
#pragma once

#include <sys/types.h>

#include <string>

namespace hocket::os {

// The number of the process's parent; 0 where it cannot be known.
pid_t process_parent(pid_t pid) noexcept;

// How a process ended, in words that follow its name: "was killed by SIGKILL (Killed)", "exited
// with code 1". `status`: waitpid's, or kReplaced.
std::string describe_end(int status);

}  // namespace hocket::os
