// Reads the variables by which launchers tell a process its place in the job.
#pragma once

#include <optional>
#include <string>

#include "hocket/launch.h"

namespace hocket::rendezvous {

// The place of a process in its job, according to one launcher. A value.
struct LaunchPlace {
  std::string launcher;
  std::string rank_variable;  // the variable with the rank, for messages
  std::string size_variable;
  int rank = 0;
  int size = 1;
  int local_rank = -1;  // -1: unknown
  int local_size = -1;
  std::string job;
  int epoch = 0;
  // A text that distinguishes this job from other jobs of the user on this host. Empty if the
  // launcher gives none. It is not a secret.
  std::string meeting;
  // The host of rank 0, and a port there that should be free. Empty if the launcher does not name
  // them. Ranks on several hosts use it, and need a key.
  std::string address;
};

// Return the place that one launcher tells. Absent if that launcher did not start the process.
// Throw InvalidArgument if the variables contradict each other, or if one is missing.
std::optional<LaunchPlace> place_from_hocket();
std::optional<LaunchPlace> place_from_torchrun();
std::optional<LaunchPlace> place_from_open_mpi();
std::optional<LaunchPlace> place_from_mpich();
std::optional<LaunchPlace> place_from_slurm();

// Returns the place that the first of these launchers tells. Absent if none of them started the
// process.
std::optional<LaunchPlace> place_from_launcher();

// Returns the door, the key and the kind of trust with which this process joins a running job as a
// newcomer. `door` is an address or the job's name. Throws InvalidArgument.
LaunchInfo newcomer(const InitOptions& options, const std::string& door);
// Returns the address of this job's door: HOCKET_DOOR, or a name on this host that is made from the
// job's name.
std::string door_of(const LaunchInfo& launch);

// Returns the number of tasks on one node, from Slurm's list such as "4(x2),3". Absent if the list
// is malformed.
std::optional<int> slurm_tasks_on_node(const std::string& tasks_per_node, int node);

}  // namespace hocket::rendezvous
