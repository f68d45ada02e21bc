// The variables by which each launcher describes a process's place.
#pragma once

#include <optional>
#include <string>

#include "hocket/launch.h"

namespace hocket::rendezvous {

// A value: a process's place, according to one launcher.
struct LaunchPlace {
  std::string launcher;
  std::string rank_variable;  // for messages
  std::string size_variable;
  int rank = 0;
  int size = 1;
  int local_rank = -1;  // -1: unknown
  int local_size = -1;
  std::string job;
  int epoch = 0;
  // Tells this job apart from the user's others on this host; empty if the launcher gives nothing
  // of the kind. It is not a secret.
  std::string meeting;
  // Rank 0's host and a port there that should be free, if the launcher names them. For ranks on
  // several hosts, which need a key.
  std::string address;
};

// Each is absent if the process was not started that way. Throws InvalidArgument if the variables
// contradict each other or one is missing.
std::optional<LaunchPlace> place_from_hocket();
std::optional<LaunchPlace> place_from_torchrun();
std::optional<LaunchPlace> place_from_open_mpi();
std::optional<LaunchPlace> place_from_mpich();
std::optional<LaunchPlace> place_from_slurm();

// From the first launcher that is found.
std::optional<LaunchPlace> place_from_launcher();

// A process that is to join the running job whose door is at `door`, an address or a job's name:
// its door, key and trust. Throws InvalidArgument.
LaunchInfo newcomer(const InitOptions& options, const std::string& door);
// The address of this job's door: HOCKET_DOOR, or a name on this host that follows from the job's.
std::string door_of(const LaunchInfo& launch);

// The number of tasks on one node, from Slurm's "4(x2),3". Absent if it does not parse.
std::optional<int> slurm_tasks_on_node(const std::string& tasks_per_node, int node);

}  // namespace hocket::rendezvous
