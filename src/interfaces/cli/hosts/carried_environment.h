// The environment that goes along to other hosts.
#pragma once

#include <string>
#include <vector>

namespace hocket::cli {

// The variables of this process that other hosts get unasked: HOCKET_*, but for those that
// launchers set themselves and the names of files and places of this host.
std::vector<std::string> carried_environment();

}  // namespace hocket::cli
