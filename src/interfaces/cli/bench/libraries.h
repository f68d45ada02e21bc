// The libraries that a benchmark can measure, and the commands that start them on this machine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "interfaces/cli/bench/team.h"

namespace hocket::cli::bench {

// hocket's name among the libraries.
inline constexpr std::string_view kHocket = "hocket";

// The name of hocket's engine that also uses symmetric memory, if it is measured alone.
inline constexpr std::string_view kPeerEngine = "peer";

// A minimal program for a few collectives, which shows the speed without checks and failures
// (bench/peer_bare.cc). With two ranks it also has a variant for symmetric memory.
inline constexpr std::string_view kBare = "bare";

// The names that --compare takes for collectives. On GPUs these are hocket's single engines.
std::vector<std::string> comparable_libraries(bool on_gpu);
// The names for numeric cases.
std::vector<std::string> numeric_libraries();

// A value: the command that starts a library, or the reason why it cannot start, and advice.
struct Offer {
  Launch launch;
  std::string missing;  // the reason; empty if it can start
};

// The unit to which a rank is bound, by the options of each library.
enum class Unit { kNone, kCore, kThread };

// A value: the placement of ranks on processors.
struct Placement {
  int ranks = 1;
  int cores = 1;       // that this process may use
  int processors = 1;  // number of hardware threads
  bool may_bind = true;
  // A core for each rank if there are as many, else a hardware thread for each, else nothing.
  Unit unit() const noexcept {
    if (!may_bind || ranks > processors) return Unit::kNone;
    return ranks <= cores ? Unit::kCore : Unit::kThread;
  }
  bool binds() const noexcept { return unit() != Unit::kNone; }
  // True if ranks share processors, so that a waiting rank should let others run.
  bool is_crowded() const noexcept { return ranks > processors; }
  bool on_gpu = false;   // arrays lie in GPUs' memory
  bool by_graph = true;  // on GPUs: calls are captured into graphs, which are replayed
};

// `library` is kHocket or one of comparable_libraries().
Offer find_library(std::string_view library, const Placement& placement);

// The words by which `hocket` starts a rank of its benchmark: a subcommand that --help does not
// list, and its options.
inline constexpr const char* kWorkerSubcommand = "bench-worker";
inline constexpr const char* kWorkerName = "--as";
inline constexpr const char* kWorkerOnGpu = "--gpu";
inline constexpr const char* kWorkerEager = "--eager";

}  // namespace hocket::cli::bench
