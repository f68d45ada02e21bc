// The start of this process: its rank, and the meeting point of the ranks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "hocket/store.h"
#include "hocket/types.h"

namespace hocket {

// The options of `init`, all of them optional. They take precedence over the environment.
struct InitOptions {
  std::optional<int> rank = {};
  std::optional<int> size = {};
  // The meeting point, which rank 0 serves: "host:port" at rank 0, or "unix:NAME".
  std::string address = {};
  // The job's secret. Without a key, ranks of one host and user meet through AF_UNIX.
  std::optional<Key> key = {};
  std::optional<Duration> timeout = {};   // for joining; absent: 300 s
  std::optional<Duration> deadline = {};  // of calls; absent: HOCKET_DEADLINE or 300 s
  std::vector<std::string> engines = {};  // names, best first; empty: all available
  std::string name = "world";             // name of the communicator of all ranks, in messages
  // Shared memory for each rank, in bytes. Absent: it depends on the machine.
  std::optional<std::size_t> segment_bytes = {};
  // Folders that are searched for NCCL and NVSHMEM, besides the system's.
  std::vector<std::string> library_folders = {};
  // The door of a running job: the address at which this process waits to be taken in; see
  // admission.h. It is an address, or the name of a job of this host and user. Rank, size and
  // address then come from that job. Empty: HOCKET_JOIN.
  std::string join = {};
};

// A value: a process's place in its job.
struct LaunchInfo {
  int rank = 0;
  int size = 1;
  int local_rank = -1;  // among the job's processes on this host; -1: the launcher does not tell
  int local_size = -1;
  // "hocket run", "torchrun", "Open MPI", "MPICH", "Slurm", "bootstrap", "explicit",
  // "single process", "admission"
  std::string launcher = "single process";
  std::string store_address = {};  // "host:port" or "unix:NAME"; empty for a job of one rank
  std::string job = {};            // not a secret: it separates jobs that meet at one address
  int epoch = 0;                   // number of restarts of the job
  std::optional<Key> key = {};
  bool rank_zero_serves = false;  // rank 0 serves the store; else the launcher does
  bool trust_network = false;     // HOCKET_TRUST_NETWORK=1
  std::string door = {};  // the address where newcomers wait: HOCKET_DOOR, or see admission.h
  std::vector<int> newcomers = {};  // the ranks that the last `admit` took in
};

// Reads the options and the environment. It does not use the network. Any thread may call it. The
// first of these sources that is present decides:
//
//   options
//   HOCKET_RANK, HOCKET_SIZE, HOCKET_LOCAL_RANK, HOCKET_LOCAL_SIZE, HOCKET_STORE, HOCKET_JOB,
//   HOCKET_KEY_FD or HOCKET_KEY_FILE
//   the variables of torchrun, Open MPI, MPICH, Slurm
//   a job of one rank
// @throws InvalidArgument if variables contradict each other or one is missing; the message names
//   them.
LaunchInfo detect_launch(const InitOptions& options = {});

}  // namespace hocket
