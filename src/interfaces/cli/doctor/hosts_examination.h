// `hocket doctor --hosts`: the head's part, which orders the hosts about and gathers what they
// find.
#pragma once

#include <string>
#include <vector>

#include "interfaces/cli/doctor/hosts_findings.h"
#include "interfaces/cli/hosts/host_list.h"
#include "interfaces/cli/hosts/remote_command.h"

namespace hocket::cli {

// A value.
struct ExaminationOptions {
  std::vector<HostSlots> hosts;
  RemoteCommand command;
  std::string key_file;  // on each host, compared with this one's; empty: not looked at
};

// Tries each host, and each pair in both directions: disjoint pairs at a time, so that none slows
// another. Call it while the process has one thread.
HostsFindings examine_hosts(const ExaminationOptions& options);

}  // namespace hocket::cli
