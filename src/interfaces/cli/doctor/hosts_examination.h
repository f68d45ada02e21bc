// `hocket doctor --hosts`: the head's part, which gives the hosts orders and collects their
// findings.
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
  std::string key_file;  // of each host, compared with this host's; empty: not compared
};

// Tests each host, and each pair in both directions. Only disjoint pairs are tested at once, so
// that no test slows another. Call it while the process has one thread.
HostsFindings examine_hosts(const ExaminationOptions& options);

}  // namespace hocket::cli
