// The head of a job over several hosts. It starts hocket on each host, passes on signals, standard
// input and output, and ends all hosts' ranks when one rank has failed.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "hocket/store.h"
#include "interfaces/cli/hosts/host_list.h"
#include "interfaces/cli/hosts/remote_command.h"

namespace hocket::cli {

// A value: `hocket run --hosts`.
struct HostsOptions {
  std::vector<HostSlots> hosts;
  RemoteCommand command;
  std::string folder;                  // on each host
  std::vector<std::string> arguments;  // `run` and the options and program of each host
  std::string rendezvous;              // "HOST" or "HOST:PORT" of the first; empty: by its name
  Key key;
  bool verbose = false;
  bool keep_going = false;
  std::chrono::milliseconds join_timeout{};
  std::chrono::milliseconds grace{};
};

// Runs the job to its end; returns the exit code of `hocket run`. Call it once, while the process
// has one thread. Throws SystemError if no process can be started.
int launch_on_hosts(const HostsOptions& options);

}  // namespace hocket::cli
