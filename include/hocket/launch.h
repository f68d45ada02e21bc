// How this process was started: who it is and where it meets the others.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hocket/store.h"
#include "hocket/types.h"

namespace hocket {

// What `init` is told; all of it optional. What is given here wins over the environment.
struct InitOptions {
  std::optional<int> rank = {};
  std::optional<int> size = {};
  // Where the ranks meet: "host:port" of rank 0, which then serves there, or "unix:NAME".
  std::string address = {};
  // The job's secret. Without one, ranks of one host and user meet by AF_UNIX.
  std::optional<Key> key = {};
  std::optional<Duration> timeout = {};   // for joining; 300 s where absent
  std::optional<Duration> deadline = {};  // of calls; HOCKET_DEADLINE or 300 s where absent
  std::vector<std::string> engines = {};  // by name, best first; empty: all there are
  std::string name = "world";             // what messages call the communicator of all ranks
  std::optional<std::size_t> segment_bytes =
      {};  // shared memory a rank; by the machine where absent
  // Where to look for NCCL and NVSHMEM beside the system's folders.
  std::vector<std::string> library_folders = {};
};

// A value: a process's place in its job.
struct LaunchInfo {
  int rank = 0;
  int size = 1;
  int local_rank = -1;  // among the job's processes on this host; -1: the launcher does not say
  int local_size = -1;
  // "hocket run", "torchrun", "Open MPI", "MPICH", "Slurm", "bootstrap", "explicit",
  // "single process"
  std::string launcher = "single process";
  std::string store_address = {};  // "host:port" or "unix:NAME"; empty for a job of one
  std::string job = {};            // no secret: keeps jobs apart that meet at one address
  int epoch = 0;                   // counts restarts of the job
  std::optional<Key> key = {};
  bool rank_zero_serves = false;  // the store; else the launcher does
  bool trust_network = false;     // HOCKET_TRUST_NETWORK=1
};

// Reads options and environment; touches no network. In this order: options; hocket's own variables
// (HOCKET_RANK, HOCKET_SIZE, HOCKET_LOCAL_RANK, HOCKET_LOCAL_SIZE, HOCKET_STORE, HOCKET_JOB,
// HOCKET_KEY_FD or HOCKET_KEY_FILE); torchrun's; Open MPI's; MPICH's; Slurm's; else a job of one.
// Throws InvalidArgument, naming the variables, where they contradict each other or one lacks.
LaunchInfo detect_launch(const InitOptions& options = {});

}  // namespace hocket
