// Finds out what the kernel supports, by trying it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hocket/machine.h"

namespace hocket::os {

// Runs `body` in a child process and returns its result. Absent if the child died, or if it was
// killed after `milliseconds`. The child is also killed when this process ends. It is for code that
// may crash or hang, such as libraries of other projects. The calling process must have only one
// thread.
std::optional<std::string> run_in_child(const std::function<std::string()>& body, int milliseconds);

// Forks a child that is killed when the calling thread ends. Returns like fork.
pid_t fork_bound_child();

// Tries every kernel feature that hocket uses.
std::vector<Feature> probe_features();

}  // namespace hocket::os
