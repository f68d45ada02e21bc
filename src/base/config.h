// The environment, read once. The only file of hocket that calls getenv.
//
// A bad value is an InvalidArgument that names the variable, the value and what was expected.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/log.h"
#include "hocket/types.h"

namespace hocket::base {

// A variable as it stands; absent when unset or empty.
std::optional<std::string> environment(const char* name);
// The same as a whole number in [low, high].
std::optional<long long> environment_integer(const char* name, long long low, long long high);

// hocket's own settings.
struct Config {
  LogLevel log = LogLevel::kWarning;              // HOCKET_LOG
  Duration deadline = std::chrono::seconds(300);  // HOCKET_DEADLINE, seconds; "forever"
  std::size_t segment_bytes = 0;    // HOCKET_SEGMENT_GIB a rank; 0: by the machine's memory
  std::string engines;              // HOCKET_ENGINES, comma separated; empty: all
  std::string flight_recorder_dir;  // HOCKET_DUMP_DIR: where a failing rank writes its calls

  static Config from_environment();
};

}  // namespace hocket::base
