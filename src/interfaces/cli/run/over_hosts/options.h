// The options of `hocket run` that concern hosts.
#pragma once

#include <string>

#include "interfaces/cli/run/launcher.h"
#include "interfaces/cli/run/over_hosts/job.h"

namespace CLI {
class App;
}

namespace hocket::cli {

// A value: the options as given.
struct HostsArguments {
  std::string hosts;
  std::string hostfile;
  std::string folder;
  RemoteCommand command;

  bool are_given() const { return !hosts.empty() || !hostfile.empty(); }
  const char* option() const { return hosts.empty() ? "--hostfile" : "--hosts"; }
  // Returns the hosts. Throws InvalidArgument, which names the position of an error.
  std::vector<HostSlots> read() const {
    return hosts.empty() ? read_hostfile(hostfile) : parse_hosts(hosts);
  }
};

// Adds --hosts, --hostfile, --launcher, --remote-hocket and, for `run`, --wdir.
void add_hosts_options(CLI::App& command, HostsArguments& arguments);

// Throws CLI::RequiresError for options of `command` that require --hosts.
void require_hosts(const HostsArguments& arguments, const CLI::App& command);

// Makes the head's options. Options of `command` that concern a single host are passed to the
// hosts. Throws InvalidArgument.
HostsOptions hosts_options(const HostsArguments& arguments,
                           const RunOptions& options,
                           const CLI::App& command);

}  // namespace hocket::cli
