// The memory of a process, as the system counts it.
#pragma once

#include <sys/types.h>

#include <fstream>
#include <string>

namespace hocket::bench {

// What a process has in memory, in KiB; 0 where there is no such process.
inline long resident_kib(pid_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string word; status >> word;) {
    if (word != "VmRSS:") continue;
    long kib = 0;
    status >> kib;
    return kib;
  }
  return 0;
}

}  // namespace hocket::bench
