// Core files of ranks that crash, held up for as long as a test wants.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/fanotify.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace hocket::multiprocess {

// A resource: a process that opens a file in `folder` stands still while this lives, like the
// writer of a core file. Needs root.
class HeldFolder {
 public:
  explicit HeldFolder(const char* folder)
      : events_(fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY)) {
    const std::uint64_t openings = FAN_OPEN_PERM | FAN_EVENT_ON_CHILD;
    held_ = events_ >= 0 && fanotify_mark(events_, FAN_MARK_ADD, openings, AT_FDCWD, folder) == 0;
  }
  ~HeldFolder() { close(events_); }
  HeldFolder(const HeldFolder&) = delete;
  HeldFolder& operator=(const HeldFolder&) = delete;
  bool is_held() const { return held_; }

 private:
  int events_;
  bool held_ = false;
};

inline std::string core_pattern() {
  std::string pattern;
  std::ifstream("/proc/sys/kernel/core_pattern") >> pattern;
  return pattern;
}

inline bool dumps_core(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(status, line);) {
    if (line == "CoreDumping:\t1") return true;
  }
  return false;
}

// Allows core files for this process.
inline bool allow_core_files() {
  const rlimit all{.rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY};
  return setrlimit(RLIMIT_CORE, &all) == 0;
}

}  // namespace hocket::multiprocess
