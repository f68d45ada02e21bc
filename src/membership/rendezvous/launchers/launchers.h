// What each launcher tells its processes in their environment.
#pragma once

#include <optional>
#include <string>

namespace hocket::rendezvous {

// A value: a process's place, as one launcher tells it.
struct LaunchPlace {
  std::string launcher;
  std::string rank_variable;  // for messages
  std::string size_variable;
  int rank = 0;
  int size = 1;
  int local_rank = -1;  // -1: not told
  int local_size = -1;
  std::string job;
  int epoch = 0;
  // What tells this job apart from the user's others on this host; empty where the launcher gives
  // nothing of the kind. Not a secret.
  std::string meeting;
  // Rank 0's host and a port there that is taken to be free, where the launcher names such; for
  // ranks on several hosts, which need a key.
  std::string address;
};

// Each is absent where the process was not started so, and throws InvalidArgument where the
// variables contradict each other or one lacks.
std::optional<LaunchPlace> place_from_hocket();
std::optional<LaunchPlace> place_from_torchrun();
std::optional<LaunchPlace> place_from_open_mpi();
std::optional<LaunchPlace> place_from_mpich();
std::optional<LaunchPlace> place_from_slurm();

// By whichever launcher there is.
std::optional<LaunchPlace> place_from_launcher();

// The number of tasks on one node out of Slurm's "4(x2),3". Absent where it says no such thing.
std::optional<int> slurm_tasks_on_node(const std::string& tasks_per_node, int node);

}  // namespace hocket::rendezvous
