// Identifies the host of a process, to decide which ranks can share memory.
#pragma once

#include <string>

namespace hocket::os {

// Returns a text that is equal for two processes exactly if their boot id, network namespace and
// user id are equal. Host names are not used, because two hosts may have the same name.
std::string host_identity();
// Returns a text that is equal for all processes that run on the same processors, also if they are
// in different containers or belong to different users.
std::string machine_identity();
// Returns the host's name, for messages.
std::string host_name();

}  // namespace hocket::os
