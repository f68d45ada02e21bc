// The environment, read once. The only file of the library that calls getenv.
//
// A bad value is an InvalidArgument that names the variable, the value and what was expected.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "hocket/types.h"

namespace hocket::base {

// A variable as it stands; absent when unset or empty.
std::optional<std::string> environment(const char* name);
// The same as a whole number in [low, high].
std::optional<long long> environment_integer(const char* name, long long low, long long high);

// The names of all variables that begin with `prefix`.
std::vector<std::string> environment_names(std::string_view prefix);

// Gives a variable that is not set this value, for libraries that read nothing else. To be called
// before they are started.
void default_environment(const char* name, const char* value);

// hocket's own settings.
struct Config {
  LogLevel log = LogLevel::kWarning;              // HOCKET_LOG
  Duration deadline = std::chrono::seconds(300);  // HOCKET_DEADLINE, seconds; "forever"
  std::size_t segment_bytes = 0;    // HOCKET_SEGMENT_GIB a rank; 0: by the machine's memory
  std::string engines;              // HOCKET_ENGINES, comma separated; empty: all
  std::string algorithm;            // HOCKET_ALGORITHM: forced algorithms, see docs/algorithms.md
  std::string flight_recorder_dir;  // HOCKET_DUMP_DIR: where a failing rank writes its calls
  std::string trace_dir;            // HOCKET_TRACE: where each rank writes its calls as it goes

  std::string interface;                       // HOCKET_INTERFACE: a name or an address
  Duration silence = std::chrono::seconds(3);  // HOCKET_SILENCE, seconds
  std::string ucx_bulk;                        // HOCKET_UCX_BULK: auto, pieces, direct
  std::string ucx_gpus;                        // HOCKET_UCX_GPUS: never, auto, always
  std::string ucx_library;                     // HOCKET_UCX_LIBRARY: its file; empty: looked for
  std::string mpi_gpus;                        // HOCKET_MPI_GPUS: never, auto, always

  std::string nccl_library;     // HOCKET_NCCL_LIBRARY: its file; empty: looked for
  std::string nvshmem_library;  // HOCKET_NVSHMEM_LIBRARY: likewise
  bool multicast = false;       // HOCKET_NVLINK_MULTICAST: NCCL and NVSHMEM may use it
  bool ras = false;             // HOCKET_NCCL_RAS: NCCL may open its port for monitoring
  std::string costs;            // HOCKET_COSTS: a file that `hocket bench --tune` wrote

  static Config from_environment();
};

// Says once a process which variables begin as hocket's do and are none of them, and what may have
// been meant.
void warn_of_unknown_settings();

}  // namespace hocket::base
