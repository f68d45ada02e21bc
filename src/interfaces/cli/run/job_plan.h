// Makes a plan from options. Everything about a job that can be refused is refused here, before any
// process is started.
#pragma once

#include <csignal>
#include <optional>
#include <string>
#include <string_view>

#include "hocket/store.h"
#include "interfaces/cli/run/job_output.h"
#include "interfaces/cli/run/launch_plan.h"
#include "interfaces/cli/run/launcher.h"
#include "interfaces/cli/run/over_hosts/head_link.h"

namespace hocket::cli {

// A job that is ready to start. A resource.
struct JobPlan {
  LaunchPlan launch;
  JobOutput output;
  Key secret;
  std::string job;               // its name, no secret
  int first_rank;                // of this host's
  Fd signals;                    // a signalfd: signals to the launcher while it runs
  std::optional<HeadLink> head;  // absent: a user started this launcher
};

// Thrown if the job's program cannot be run. `hocket run` then has the exit code that a shell uses.
class ProgramError : public InvalidArgument {
 public:
  ProgramError(const std::string& message, int exit_code)
      : InvalidArgument(message), exit_code_(exit_code) {}
  int exit_code() const noexcept { return exit_code_; }

 private:
  int exit_code_;
};

// Makes the plan, and blocks the signals that the launcher handles. On a host other than the first,
// it waits for the other launchers. Throws InvalidArgument (ProgramError for the program),
// RendezvousError and SystemError.
JobPlan plan_job(const RunOptions& options);

// True for variables that ranks get from the launcher; a user's values do not replace them.
bool is_own_variable(std::string_view name);
// Opens standard descriptors that are closed, because pipes would get their numbers.
void open_standard_descriptors();
// Blocks the signals that a launcher handles, and returns their signalfd. Signals that were ignored
// at the start (nohup) stay ignored.
Fd take_signals(sigset_t& mask_before);

}  // namespace hocket::cli
