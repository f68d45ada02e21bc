// The environment variables that are passed to other hosts.
#pragma once

#include <string>
#include <vector>

namespace hocket::cli {

// Returns the variables of this process that other hosts get by default: HOCKET_*. Excluded are
// variables that launchers set, and variables that name files or places of this host.
std::vector<std::string> carried_environment();

}  // namespace hocket::cli
