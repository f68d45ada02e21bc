// The plan of the ranks: all decisions that are made before the first process is forked.
#pragma once

#include <sys/resource.h>

#include <csignal>
#include <optional>
#include <string>
#include <vector>

#include "interfaces/cli/cpu_mask.h"
#include "interfaces/cli/fd.h"
#include "interfaces/cli/run/environment_block.h"

namespace hocket::cli {

// A resource (it owns the ranks' ends of the pipes). Made in the launcher, used in the guardian.
struct RankPlan {
  int rank = 0;
  EnvironmentBlock environment;  // without HOCKET_STORE and HOCKET_SIZE
  Fd in, out, err;
  std::optional<CpuMask> cpus;  // absent: as inherited
  // In a separate process group, a rank gets the terminal's signals through the launcher alone. A
  // rank that reads the terminal must stay in the foreground group.
  bool own_process_group = true;
};

struct LaunchPlan {
  std::string program;                 // path
  std::vector<std::string> arguments;  // with the program's name as given
  std::vector<RankPlan> ranks;
  int size = 0;                // of the job; on several hosts the first learns it later
  Fd key;                      // sealed memfd, handed on as kKeyFd
  pid_t foreground_group = 0;  // the launcher's process group
  sigset_t signal_mask{};      // the mask that the launcher was started with
  rlim_t open_files = 0;       // the soft limit that the launcher was started with
};

// The descriptor from which a rank reads the job's key.
inline constexpr int kKeyFd = 3;

}  // namespace hocket::cli
