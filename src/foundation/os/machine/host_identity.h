// Which machine this is, for deciding which ranks share memory.
#pragma once

#include <string>

namespace hocket::os {

// Equal for two processes exactly when they run under one kernel start, in one network namespace,
// as one user: boot id, namespace and user id. Hostnames are left out, as they collide.
std::string host_identity();
// Equal for two processes that share processors, whatever else they share.
std::string machine_identity();
// For people.
std::string host_name();

}  // namespace hocket::os
