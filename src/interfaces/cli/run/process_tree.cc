#include "interfaces/cli/run/process_tree.h"

#include <dirent.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <optional>
#include <set>

#include "interfaces/cli/fd.h"

namespace hocket::cli {
namespace {

// Fields of /proc/PID/stat.
struct ProcessStat {
  char state = '?';
  pid_t parent = 0;
  unsigned flags = 0;  // PF_* of the kernel's sched.h
};
constexpr unsigned kFlagExiting = 0x4;     // PF_EXITING
constexpr unsigned kFlagSignaled = 0x400;  // PF_SIGNALED: a signal ends it

std::optional<ProcessStat> stat_of(pid_t pid) {
  char path[32];
  std::snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(pid));
  const Fd file(::open(path, O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return {};
  char text[1024];
  const ssize_t length = ::read(file.get(), text, sizeof text - 1);
  if (length <= 0) return {};
  text[length] = '\0';
  // The name, in parentheses, may contain any character; the text after the last one is plain.
  const char* rest = std::strrchr(text, ')');
  ProcessStat stat;
  int parent = 0;
  if (rest == nullptr ||
      std::sscanf(rest + 1, " %c %d %*d %*d %*d %*d %u", &stat.state, &parent, &stat.flags) != 3) {
    return {};
  }
  stat.parent = parent;
  return stat;
}

struct Process {
  pid_t pid;
  pid_t parent;
};

std::vector<Process> all_processes() {
  std::vector<Process> result;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), ::closedir);
  if (!folder) return result;
  while (const dirent* entry = ::readdir(folder.get())) {
    const char* end = entry->d_name + std::strlen(entry->d_name);
    int pid = 0;
    if (std::from_chars(entry->d_name, end, pid).ptr != end) continue;
    const auto stat = stat_of(pid);
    if (stat && stat->state != 'Z' && stat->state != 'X') result.push_back({pid, stat->parent});
  }
  return result;
}

void reap_all_that_ended() {
  while (::waitpid(-1, nullptr, WNOHANG) > 0) {
  }
}

bool has_children() {
  siginfo_t info{};
  return ::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

}  // namespace

bool is_ending(pid_t pid) {
  const auto stat = stat_of(pid);
  return stat && (stat->state == 'Z' || (stat->flags & (kFlagExiting | kFlagSignaled)) != 0);
}

std::vector<pid_t> descendants_of(pid_t ancestor) {
  const std::vector<Process> processes = all_processes();
  std::vector<pid_t> found{ancestor};
  for (std::size_t next = 0; next < found.size(); ++next) {
    for (const Process& process : processes) {
      if (process.parent == found[next] && std::ranges::find(found, process.pid) == found.end()) {
        found.push_back(process.pid);
      }
    }
  }
  found.erase(found.begin());
  return found;
}

void become_subreaper() { ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

int kill_descendants() {
  // A process may start a child between the search and its kill. The child then becomes a child of
  // this process, and the next round finds it. A round that finds no new process pauses, because
  // freeing a large memory takes a while.
  std::set<pid_t> killed;
  while (has_children()) {
    bool found_new = false;
    for (const pid_t pid : descendants_of(::getpid())) {
      ::kill(pid, SIGKILL);
      found_new |= killed.insert(pid).second;
    }
    reap_all_that_ended();
    const timespec pause{.tv_sec = 0, .tv_nsec = found_new ? 200'000 : 2'000'000};
    ::nanosleep(&pause, nullptr);
    reap_all_that_ended();
  }
  return static_cast<int>(killed.size());
}

}  // namespace hocket::cli
