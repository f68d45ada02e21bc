// The address of a job's first host by which the other hosts reach it.
#pragma once

#include <string>

#include "interfaces/cli/hosts/briefing.h"

namespace hocket::cli {

// Called on the first host. Takes the host's name if that means an address of this host; else the
// address on the way to another host; else the one that ssh came to. Loopback is taken if all
// names mean it. Throws InvalidArgument if there is none.
std::string meeting_address(const Briefing& briefing);

}  // namespace hocket::cli
