// Trying what the kernel can do.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "hocket/machine.h"

namespace hocket::os {

// Runs `body` in a child process and returns what it returned there; absent when the child died or
// took longer than `milliseconds`, and was killed, as it is when this process ends. For code that
// may crash or hang, such as other people's libraries. To be called by a process with one thread.
std::optional<std::string> run_in_child(const std::function<std::string()>& body, int milliseconds);

// Every feature of the kernel that hocket uses, tried.
std::vector<Feature> probe_features();

}  // namespace hocket::os
