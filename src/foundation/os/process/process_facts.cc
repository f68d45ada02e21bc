#include "foundation/os/process/process_facts.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "foundation/os/process/process_exit.h"
#include "foundation/os/process/process_stat.h"

namespace hocket::os {

pid_t process_parent(pid_t pid) noexcept {
  std::array<char, 32> path;
  std::snprintf(path.data(), path.size(), "/proc/%d/stat", static_cast<int>(pid));
  const auto stat = read_process_stat(path.data());
  return stat ? stat->parent : 0;
}

std::string describe_end(int status) {
  if (status == kReplaced) return "replaced itself by another program (exec)";
  if (!WIFSIGNALED(status)) return fmt::format("exited with code {}", WEXITSTATUS(status));
  const int number = WTERMSIG(status);
  const char* name = ::sigabbrev_np(number);
  const char* meaning = ::sigdescr_np(number);
  return fmt::format(
      "was killed by {} ({}){}",
      name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", number),
      meaning != nullptr ? meaning : "unknown",
      WCOREDUMP(status) ? ", core dumped" : "");
}

}  // namespace hocket::os
