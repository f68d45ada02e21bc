// The line /proc/PID/stat of a process or a thread; see proc(5).
#pragma once

#include <fcntl.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace hocket::os {

// Some fields of the line. A value.
struct ProcessStat {
  char state = '?';
  pid_t parent = 0;
  std::uint64_t start = 0;  // see process_start
  int processor = -1;       // on which it last ran
  int exit_code = 0;        // as of waitpid
};

// Reads a file `stat`. `path` may be relative to `folder`. Absent if the file cannot be read. It
// allocates no memory.
std::optional<ProcessStat> read_process_stat(const char* path, int folder = AT_FDCWD) noexcept;

}  // namespace hocket::os
