// The libraries that a benchmark can measure, and how each is started on this machine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/bench/team.h"

namespace hocket::cli::bench {

// hocket's own name among the libraries.
inline constexpr std::string_view kHocket = "hocket";

// Its engine that has symmetric memory too, where that is measured alone.
inline constexpr std::string_view kPeerEngine = "peer";

// A bare program for one task, the mark to come near to; it has symmetric memory as well.
inline constexpr std::string_view kBare = "bare";

// The names that --compare takes for collectives. On GPUs these are hocket's engines, each alone.
std::vector<std::string> comparable_libraries(bool on_gpu);
// Those for what is numeric.
std::vector<std::string> numeric_libraries();

// A value: how to start a library, or why it cannot be and what to try.
struct Offer {
  Launch launch;
  std::string missing;  // empty where it can be started
};

struct Placement {
  int ranks = 1;
  int cores = 1;  // that this process may use
  // With a core for each rank, all libraries' ranks are bound to one each; with fewer, none is.
  bool binds() const noexcept { return ranks <= cores; }
  bool on_gpu = false;   // arrays lie in GPUs' memory
  bool by_graph = true;  // there: calls are captured, and replayed
};

// `library` is kHocket or one of comparable_libraries().
Offer find_library(std::string_view library, const Placement& placement);

// Words by which `hocket` starts a rank of its own benchmark: a subcommand that help does not list,
// and its options.
inline constexpr const char* kWorkerSubcommand = "bench-worker";
inline constexpr const char* kWorkerName = "--as";
inline constexpr const char* kWorkerOnGpu = "--gpu";
inline constexpr const char* kWorkerEager = "--eager";

}  // namespace hocket::cli::bench
