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

// A resource.
struct JobPlan {
  LaunchPlan launch;
  JobOutput output;
  Key secret;
  std::string job;               // its name, no secret
  int first_rank;                // of this host's
  Fd signals;                    // a signalfd: signals to the launcher while it runs
  std::optional<HeadLink> head;  // absent: a user started this launcher
};

// The program of a job cannot be run. Ends `hocket run` with the exit code that a shell uses.
class ProgramError : public InvalidArgument {
 public:
  ProgramError(const std::string& message, int exit_code)
      : InvalidArgument(message), exit_code_(exit_code) {}
  int exit_code() const noexcept { return exit_code_; }

 private:
  int exit_code_;
};

// On a host that is not the first, waits for the others' launchers. Blocks the signals that the
// launcher handles. Throws InvalidArgument (ProgramError for the program), RendezvousError and
// SystemError.
JobPlan plan_job(const RunOptions& options);

// True for variables that ranks get from the launcher; a user's values do not replace them.
bool is_own_variable(std::string_view name);
// Opens standard descriptors that are closed, which pipes would take.
void open_standard_descriptors();
// Blocks the signals that a launcher handles, and returns their signalfd. Signals that were ignored
// at the start (nohup) stay ignored.
Fd take_signals(sigset_t& mask_before);

}  // namespace hocket::cli
