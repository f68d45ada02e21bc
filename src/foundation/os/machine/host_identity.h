// Identifies the machine, to decide which ranks share memory.
#pragma once

#include <string>

namespace hocket::os {

// Returns a text that is equal for two processes exactly if boot id, network namespace and user id
// agree. Host names are not used, because they may collide.
std::string host_identity();
// Returns a text that is equal for processes that share processors.
std::string machine_identity();
// Returns the host's name, for messages.
std::string host_name();

}  // namespace hocket::os
