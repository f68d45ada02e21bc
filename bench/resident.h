// The resident memory of a process, as /proc reports it.
#pragma once

#include <sys/types.h>

#include <fstream>
#include <string>

namespace hocket::bench {

// Resident memory of a process, in KiB; 0 if there is no such process.
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
