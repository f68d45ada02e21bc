// The address of a job's first host by which the other hosts reach it.
#pragma once

#include <string>

#include "interfaces/cli/hosts/briefing.h"

namespace hocket::cli {

// Call it on the first host. Prefers the host's name if it resolves to an address of this host.
// Next comes the source address of the route to another host, then the address that ssh connected
// to. A loopback address is used only if the names of all hosts mean this machine. Throws
// InvalidArgument if there is no address.
std::string meeting_address(const Briefing& briefing);

}  // namespace hocket::cli
