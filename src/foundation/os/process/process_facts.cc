#include "foundation/os/process/process_facts.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <cstring>

#include "foundation/os/process/process_exit.h"

namespace hocket::os {

pid_t process_parent(pid_t pid) noexcept {
  try {
    const std::string stat = read_proc_file(fmt::format("/proc/{}/stat", pid));
    // The program's name, in parentheses, may contain any character.
    const auto name_end = stat.rfind(')');
    int parent = 0;
    if (name_end == std::string::npos ||
        std::sscanf(stat.c_str() + name_end + 1, " %*c %d", &parent) != 1) {
      return 0;
    }
    return parent;
  } catch (const std::bad_alloc&) {
    return 0;
  }
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
