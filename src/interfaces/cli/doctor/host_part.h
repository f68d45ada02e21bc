// The part of `hocket doctor --hosts` that each host plays, as the head orders it.
//
//   orders                     notices, each with JSON behind its name
//                              facts    this host's, and on the first where all meet
//   go ADDRESS STORE           listens  the interface and port that are used, and whether the store
//                                       was reached
//   clock                      clock    nanoseconds since 1970
//   probe HOST ADDRESS PORT    probed   the way to that host
//   end                        heard    the hosts whose packets have come
#pragma once

#include <string>

#include "interfaces/cli/hosts/briefing.h"

namespace hocket::cli {

// Runs until the head says so, or is gone. Returns the exit code.
int examine_as_host(const Briefing& briefing, const std::string& key_file);

}  // namespace hocket::cli
