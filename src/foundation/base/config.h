// Reads settings from environment variables. No other file of the library calls getenv.
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

// Returns the text of a variable. Absent if it is unset or empty.
std::optional<std::string> environment(const char* name);
// Returns a variable as an integer in [low, high]. Absent if it is unset.
std::optional<long long> environment_integer(const char* name, long long low, long long high);
// Returns a variable that is 0 or 1 as a bool; `otherwise` if it is unset.
bool environment_switch(const char* name, bool otherwise = false);
// Returns the index of a variable's value in `words`; 0 if it is unset.
std::size_t environment_word(const char* name, std::initializer_list<const char*> words);

// Returns the names of all variables that begin with `prefix`.
std::vector<std::string> environment_names(std::string_view prefix);

// Sets a variable if it is unset. It configures libraries that read nothing but the environment,
// and must be called before they start.
void default_environment(const char* name, const char* value);

// When ranks of one host read each other's arrays directly through the kernel, without a copy in
// shared memory.
enum class SingleCopy : std::uint8_t { kNever, kWhereQuicker, kAlways };

// The lengths of a wait after which hocket warns of it, or searches for a deadlock. kForever:
// never. The environment gives both in seconds, and 0 for never. A value.
struct WaitTimes {
  Duration warn_after = std::chrono::seconds(10);           // HOCKET_WARN
  Duration deadlock_after = std::chrono::milliseconds(30);  // HOCKET_DEADLOCK_AFTER
};

// The ports on which a process may listen. A value. Both numbers are 0 if the system chooses.
struct PortRange {
  int low = 0;
  int high = 0;  // inclusive
  bool is_set() const noexcept { return high != 0; }
};
// Returns the ports of HOCKET_PORTS.
PortRange port_range();

// The library that a setting selects, by a known word or by its file. A value. At most one of the
// two texts is set. Both are empty if the variable is unset.
struct LibraryChoice {
  std::string word;
  std::string file;
  const std::string& text() const noexcept { return file.empty() ? word : file; }
};
// Returns the choice of HOCKET_FFT_LIBRARY: fftw, mkl, eigen or a file.
LibraryChoice fft_library();
// Returns the choice of HOCKET_BLAS_LIBRARY: openblas, mkl, blis, none or a file.
LibraryChoice blas_library();

// The settings of the job and of the library as a whole. Each engine reads its own settings.
struct Config {
  LogLevel log = LogLevel::kWarning;              // HOCKET_LOG
  Duration deadline = std::chrono::seconds(300);  // HOCKET_DEADLINE, seconds; "forever"
  WaitTimes waits;
  std::size_t segment_bytes = 0;    // HOCKET_SEGMENT_GIB for each rank; 0: by the machine's memory
  std::string engines;              // HOCKET_ENGINES, comma separated; empty: all
  std::string algorithm;            // HOCKET_ALGORITHM: forced algorithms, see docs/algorithms.md
  std::string flight_recorder_dir;  // HOCKET_DUMP_DIR: where a failing rank writes its calls
  std::string trace_dir;            // HOCKET_TRACE: where each rank traces its calls
  std::string audit_dir;  // HOCKET_AUDIT: where each rank writes digests of its calls' arrays

  std::string interface;                               // HOCKET_INTERFACE: a name or an address
  PortRange ports;                                     // HOCKET_PORTS: "29500-29600"
  Duration silence = std::chrono::seconds(3);          // HOCKET_SILENCE, seconds
  SingleCopy single_copy = SingleCopy::kWhereQuicker;  // HOCKET_SINGLE_COPY
  std::string costs;     // HOCKET_COSTS: a file that `hocket bench --tune` wrote
  bool is_shown = true;  // HOCKET_TOP: whether `hocket top` may see this rank

  // Reads all settings of this struct. It also checks HOCKET_FFT_LIBRARY and HOCKET_BLAS_LIBRARY,
  // which other code reads later.
  static Config from_environment();
};

// The variable that allows NCCL and NVSHMEM to use NVLink multicast. The loaders of both libraries
// read it.
inline constexpr const char* kMulticastVariable = "HOCKET_NVLINK_MULTICAST";

// A variable and its description. A value; both texts are literals.
struct SettingRow {
  const char* name;
  const char* meaning;  // what the variable does, its values and its default
};
// Returns the descriptions of all variables that belong to no engine.
std::span<const SettingRow> common_settings();

// Warns about variables that begin with HOCKET_ but are neither in common_settings() nor in `more`,
// and suggests similar names. It does so once in a process.
void warn_of_unknown_settings(std::span<const SettingRow> more);

}  // namespace hocket::base
