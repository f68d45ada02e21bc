// The environment, read once. This is the only file of the library that calls getenv.
//
// A bad value is an InvalidArgument that names the variable, the value and the valid values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/base/log.h"
#include "hocket/types.h"

namespace hocket::base {

// Returns a variable. Absent if it is unset or empty.
std::optional<std::string> environment(const char* name);
// Returns a variable as an integer in [low, high].
std::optional<long long> environment_integer(const char* name, long long low, long long high);
// Returns a variable as 0 or 1. Unset means 0.
bool environment_switch(const char* name);
// Returns a variable as the index of one of these words. Unset means 0.
std::size_t environment_word(const char* name, std::initializer_list<const char*> words);

// Returns the names of all variables that begin with `prefix`.
std::vector<std::string> environment_names(std::string_view prefix);

// Sets a variable that is unset, for libraries that have no other configuration. It must be called
// before they start.
void default_environment(const char* name, const char* value);

// The cases in which ranks of one host read each other's arrays directly, through the kernel.
enum class SingleCopy : std::uint8_t { kNever, kWhereQuicker, kAlways };

// Times after which something is done about a wait; kForever: never. A value.
struct WaitTimes {
  Duration warn_after = std::chrono::seconds(10);           // HOCKET_WARN, seconds; 0: never
  Duration deadlock_after = std::chrono::milliseconds(30);  // HOCKET_DEADLOCK_AFTER, likewise
};

// The ports on which a process may listen. A value; without numbers the system chooses.
struct PortRange {
  int low = 0;
  int high = 0;  // included
  bool is_set() const noexcept { return high != 0; }
};
// Returns the range of HOCKET_PORTS.
PortRange port_range();

// The settings of the job and of the library as a whole. Each engine reads its own settings.
struct Config {
  LogLevel log = LogLevel::kWarning;              // HOCKET_LOG
  Duration deadline = std::chrono::seconds(300);  // HOCKET_DEADLINE, seconds; "forever"
  WaitTimes waits;
  std::size_t segment_bytes = 0;    // HOCKET_SEGMENT_GIB for each rank; 0: by the machine's memory
  std::string engines;              // HOCKET_ENGINES, comma separated; empty: all
  std::string algorithm;            // HOCKET_ALGORITHM: forced algorithms, see docs/algorithms.md
  std::string flight_recorder_dir;  // HOCKET_DUMP_DIR: where a failing rank writes its calls
  std::string trace_dir;            // HOCKET_TRACE: where each rank writes its calls as it makes
                                    // them
  std::string audit_dir;  // HOCKET_AUDIT: where each rank writes digests of its calls' arrays

  std::string interface;                               // HOCKET_INTERFACE: a name or an address
  PortRange ports;                                     // HOCKET_PORTS: "29500-29600"
  Duration silence = std::chrono::seconds(3);          // HOCKET_SILENCE, seconds
  SingleCopy single_copy = SingleCopy::kWhereQuicker;  // HOCKET_SINGLE_COPY
  std::string costs;  // HOCKET_COSTS: a file that `hocket bench --tune` wrote

  static Config from_environment();
};

// The variable that allows NCCL and NVSHMEM to use NVLink multicast. The loaders of both libraries
// read it.
inline constexpr const char* kMulticastVariable = "HOCKET_NVLINK_MULTICAST";

// A variable and its description. A value; both texts are literals.
struct SettingRow {
  const char* name;
  const char* meaning;  // with its values and default
};
// The settings that belong to no engine.
std::span<const SettingRow> common_settings();

// Warns once in a process about variables with hocket's prefix that are neither common nor in
// `more`, and suggests similar names.
void warn_of_unknown_settings(std::span<const SettingRow> more);

}  // namespace hocket::base
