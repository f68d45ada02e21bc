// The environment, read once. The only file of the library that calls getenv.
//
// A bad value is an InvalidArgument that names the variable, the value and what was expected.
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

// A variable as it stands; absent when unset or empty.
std::optional<std::string> environment(const char* name);
// The same as a whole number in [low, high].
std::optional<long long> environment_integer(const char* name, long long low, long long high);
// The same as 0 or 1; unset: 0.
bool environment_switch(const char* name);
// The same as the place of one of these words; unset: 0.
std::size_t environment_word(const char* name, std::initializer_list<const char*> words);

// The names of all variables that begin with `prefix`.
std::vector<std::string> environment_names(std::string_view prefix);

// Gives a variable that is not set this value, for libraries that read nothing else. To be called
// before they are started.
void default_environment(const char* name, const char* value);

// Whether ranks of one host read each other's arrays where they lie, by the kernel.
enum class SingleCopy : std::uint8_t { kNever, kWhereQuicker, kAlways };

// Settings of the job and of the library as a whole; what an engine can be told is read where that
// engine is.
struct Config {
  LogLevel log = LogLevel::kWarning;               // HOCKET_LOG
  Duration deadline = std::chrono::seconds(300);   // HOCKET_DEADLINE, seconds; "forever"
  Duration warn_after = std::chrono::seconds(10);  // HOCKET_WARN, seconds; 0: never, as kForever
  std::size_t segment_bytes = 0;    // HOCKET_SEGMENT_GIB a rank; 0: by the machine's memory
  std::string engines;              // HOCKET_ENGINES, comma separated; empty: all
  std::string algorithm;            // HOCKET_ALGORITHM: forced algorithms, see docs/algorithms.md
  std::string flight_recorder_dir;  // HOCKET_DUMP_DIR: where a failing rank writes its calls
  std::string trace_dir;            // HOCKET_TRACE: where each rank writes its calls as it goes
  std::string audit_dir;  // HOCKET_AUDIT: where each rank writes digests of its calls' arrays

  std::string interface;                               // HOCKET_INTERFACE: a name or an address
  Duration silence = std::chrono::seconds(3);          // HOCKET_SILENCE, seconds
  SingleCopy single_copy = SingleCopy::kWhereQuicker;  // HOCKET_SINGLE_COPY
  std::string costs;  // HOCKET_COSTS: a file that `hocket bench --tune` wrote

  static Config from_environment();
};

// Whether NCCL and NVSHMEM may use NVLink multicast: read by who loads either.
inline constexpr const char* kMulticastVariable = "HOCKET_NVLINK_MULTICAST";

// A variable, and what people are told of it. A value; both texts are literals.
struct SettingRow {
  const char* name;
  const char* meaning;  // with its values and default
};
// Those that are no engine's.
std::span<const SettingRow> common_settings();

// Says once a process which variables begin as hocket's do and are neither common nor among `more`,
// and what may have been meant.
void warn_of_unknown_settings(std::span<const SettingRow> more);

}  // namespace hocket::base
