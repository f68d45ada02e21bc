// The launcher starts a job's ranks, shows their output, and makes sure that all of them end.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "interfaces/cli/run/binding.h"

namespace hocket::cli {

struct Briefing;

// The options of `hocket run`.
struct RunOptions {
  int ranks = 1;                         // on this host
  std::vector<std::string> command;      // the program and its arguments
  std::vector<std::string> environment;  // NAME=VALUE
  Binding binding = Binding::kAuto;
  bool prefix = true;  // of output lines, with more than one rank
  bool quiet = false;  // standard output of rank 0 alone
  bool verbose = false;
  bool mpi = false;         // programs of MPI find hocket's library
  std::string join;         // the running job that the ranks join; empty: they form a job
  bool keep_going = false;  // a failed rank does not end the others
  std::string log_dir;      // empty: none
  std::string trace_dir;    // empty: none
  std::string audit_dir;    // empty: none
  std::string metrics;      // address at which metrics are served; empty: none
  std::optional<std::chrono::milliseconds> timeout;  // of the job, since its ranks were started
  // The longest time until the launchers of all hosts have met.
  std::chrono::milliseconds join_timeout = std::chrono::seconds(300);
  // Time that ranks have to end by themselves after another rank has failed. They learn of the
  // failure within milliseconds. They need the time to raise an error or save data.
  std::chrono::milliseconds grace{1000};
  // A job of several hosts, each with a separate launcher.
  int nodes = 1;
  int node_rank = 0;
  std::string rendezvous;  // "host:port" of the first host
  std::string key_file;
  // Set if a head started this launcher on one of its hosts. Null: a user started it.
  const Briefing* briefing = nullptr;
};

// The most ranks on one host.
inline constexpr int kMaxRanks = 1024;

// Time between the request to end and the kill.
inline constexpr std::chrono::milliseconds kGraceAfterTerm{1000};
inline constexpr std::chrono::milliseconds kGraceAfterSignal{5000};

inline constexpr int kExitTimeout = 124;  // as timeout(1)

// Runs the job to its end; returns the exit code of `hocket run`. Call it once, while the process
// has one thread. Messages go to standard error. Throws InvalidArgument and SystemError if no rank
// could be started.
int launch(const RunOptions& options);

}  // namespace hocket::cli
