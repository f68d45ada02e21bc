// Tests by trial what the kernel supports.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hocket/machine.h"

namespace hocket::os {

// Runs `body` in a child process and returns its result. Absent if the child died, or was killed
// after `milliseconds`. The child is also killed when this process ends. It is for code that may
// crash or hang, such as libraries of others. The calling process must have only one thread.
std::optional<std::string> run_in_child(const std::function<std::string()>& body, int milliseconds);

// Tries every kernel feature that hocket uses.
std::vector<Feature> probe_features();

}  // namespace hocket::os
