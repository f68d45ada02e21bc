// The part of `hocket doctor --hosts` that each host plays, as the head orders it.
//
//   orders from the head       notices from the host, each followed by JSON
//                              facts    this host's; the first host adds the meeting point
//   go ADDRESS STORE           listens  the interface and port that are used, and whether the store
//                                       was reached
//   clock                      clock    nanoseconds since 1970
//   probe HOST ADDRESS PORT    probed   the connection to that host
//   end                        heard    the hosts whose packets have arrived
#pragma once

#include <string>

#include "interfaces/cli/hosts/briefing.h"

namespace hocket::cli {

// Runs until the head orders the end, or is gone. Returns the exit code.
int examine_as_host(const Briefing& briefing, const std::string& key_file);

}  // namespace hocket::cli
