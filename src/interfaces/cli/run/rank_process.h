// From fork to exec: the few steps between the guardian and a rank's program.
#pragma once

#include <sys/types.h>

#include "interfaces/cli/run/launch_plan.h"

namespace hocket::cli {

// The error of a rank's program that did not start. It is sent through a pipe that a successful
// exec closes.
struct StartFailure {
  int rank;
  int error_number;
};

// Forks and runs rank `plan.ranks[index]`. Call it in a process with one thread. A failure after
// the fork is written to `failures` as a StartFailure. The child dies with this process. Returns
// the child's pid, or -1 with errno if fork failed.
pid_t start_rank(LaunchPlan& plan, std::size_t index, int failures);

}  // namespace hocket::cli
