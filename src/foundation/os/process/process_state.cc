#include "foundation/os/process/process_state.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "foundation/base/words.h"
#include "foundation/os/process/process_exit.h"
#include "foundation/os/process/process_stat.h"

namespace hocket::os {
namespace {

constexpr int kMostThreads = 256;  // most threads that are inspected

struct NamedCall {
  long number;
  std::string_view name;
};
// The system calls in which a program may block for long.
constexpr std::array kCalls{
    NamedCall{SYS_read, "read"},
    NamedCall{SYS_write, "write"},
    NamedCall{SYS_readv, "readv"},
    NamedCall{SYS_writev, "writev"},
    NamedCall{SYS_pread64, "pread64"},
    NamedCall{SYS_pwrite64, "pwrite64"},
    NamedCall{SYS_openat, "openat"},
    NamedCall{SYS_close, "close"},
    NamedCall{SYS_fsync, "fsync"},
    NamedCall{SYS_fdatasync, "fdatasync"},
    NamedCall{SYS_flock, "flock"},
    NamedCall{SYS_fcntl, "fcntl"},
    NamedCall{SYS_ioctl, "ioctl"},
    NamedCall{SYS_ppoll, "ppoll"},
    NamedCall{SYS_pselect6, "pselect6"},
    NamedCall{SYS_epoll_pwait, "epoll_pwait"},
    NamedCall{SYS_futex, "futex"},
    NamedCall{SYS_nanosleep, "nanosleep"},
    NamedCall{SYS_clock_nanosleep, "clock_nanosleep"},
    NamedCall{SYS_recvfrom, "recvfrom"},
    NamedCall{SYS_recvmsg, "recvmsg"},
    NamedCall{SYS_sendto, "sendto"},
    NamedCall{SYS_sendmsg, "sendmsg"},
    NamedCall{SYS_accept, "accept"},
    NamedCall{SYS_accept4, "accept4"},
    NamedCall{SYS_connect, "connect"},
    NamedCall{SYS_wait4, "wait4"},
    NamedCall{SYS_waitid, "waitid"},
    NamedCall{SYS_rt_sigtimedwait, "rt_sigtimedwait"},
    NamedCall{SYS_mmap, "mmap"},
    NamedCall{SYS_munmap, "munmap"},
    NamedCall{SYS_io_getevents, "io_getevents"},
#ifdef SYS_poll
    NamedCall{SYS_poll, "poll"},
    NamedCall{SYS_select, "select"},
    NamedCall{SYS_epoll_wait, "epoll_wait"},
    NamedCall{SYS_open, "open"},
    NamedCall{SYS_pause, "pause"},
#endif
#ifdef SYS_futex_waitv
    NamedCall{SYS_futex_waitv, "futex_waitv"},
#endif
};

// Returns the value of a line "NAME:\tVALUE" of /proc/PID/status.
std::string_view field(std::string_view status, std::string_view name) {
  const auto at = status.find(fmt::format("\n{}:", name));
  if (at == std::string_view::npos) return {};
  status.remove_prefix(at + name.size() + 2);
  return base::next_word(status);
}

// Returns the system call in which a process or thread sleeps. The kernel shows it only to
// processes that may trace the other one. All others get the name of the kernel's function, or
// nothing.
std::string system_call_of(const std::string& folder) {
  const std::string text = read_proc_file(folder + "/syscall");
  if (const auto call = base::first_number<long>(text); call && *call >= 0) {
    const auto found = std::ranges::find(kCalls, *call, &NamedCall::number);
    return found != kCalls.end() ? std::string(found->name) : fmt::format("number {}", *call);
  }
  std::string where = read_proc_file(folder + "/wchan");
  return where == "0" ? std::string() : where;
}

int running_threads(pid_t pid) {
  const std::string folder = fmt::format("/proc/{}/task", pid);
  DIR* const threads = ::opendir(folder.c_str());
  if (threads == nullptr) return 0;
  int running = 0;
  int looked_at = 0;
  while (const dirent* each = ::readdir(threads)) {
    const auto thread = base::number_in<pid_t>(each->d_name);
    if (!thread || *thread == pid) continue;
    if (++looked_at > kMostThreads) break;
    const std::string status = read_proc_file(fmt::format("{}/{}/status", folder, *thread));
    if (field(status, "State") == "R") ++running;
  }
  ::closedir(threads);
  return running;
}

std::string tracer_of(std::string_view status) {
  const auto tracer = base::number_in<long>(field(status, "TracerPid"));
  if (!tracer || *tracer == 0) return {};
  std::string name = read_proc_file(fmt::format("/proc/{}/comm", *tracer));
  if (!name.empty() && name.back() == '\n') name.pop_back();
  return name.empty() ? fmt::format("pid {}", *tracer) : fmt::format("{} (pid {})", name, *tracer);
}

// Returns the state that a folder of /proc describes: that of a process, or of one of its threads.
ProcessState state_in(const std::string& folder, pid_t pid, std::uint64_t start) {
  using Doing = ProcessState::Doing;
  ProcessState state;
  const std::string status = read_proc_file(folder + "/status");
  if (start == 0 || process_start(pid) != start) return state;
  state.tracer = tracer_of(status);
  const auto stat = read_process_stat((folder + "/stat").c_str());
  if (stat) state.processor = stat->processor;
  if (field(status, "CoreDumping") == "1") {
    state.doing = Doing::kDumping;
    return state;
  }
  const std::string_view letter = field(status, "State");
  if (letter == "R") state.doing = Doing::kRunning;
  if (letter == "S" || letter == "I") state.doing = Doing::kSleeping;
  if (letter == "D") state.doing = Doing::kOnDevice;
  if (letter == "T") state.doing = Doing::kStopped;
  if (letter == "t") state.doing = Doing::kTraced;
  if (state.doing == Doing::kSleeping || state.doing == Doing::kOnDevice) {
    state.system_call = system_call_of(folder);
  }
  return state;
}

}  // namespace

ProcessState process_state(pid_t pid, std::uint64_t start) {
  ProcessState state = state_in(fmt::format("/proc/{}", pid), pid, start);
  const bool sleeps = state.doing == ProcessState::Doing::kSleeping ||
                      state.doing == ProcessState::Doing::kOnDevice;
  if (sleeps) state.running_threads = running_threads(pid);
  return state;
}

ProcessState thread_state(pid_t pid, std::uint64_t start, pid_t thread) {
  return state_in(fmt::format("/proc/{}/task/{}", pid, thread), pid, start);
}

std::string describe(const ProcessState& state, pid_t pid) {
  using Doing = ProcessState::Doing;
  std::string text;
  switch (state.doing) {
    case Doing::kUnknown:
      return text;
    case Doing::kRunning:
      text = "running";
      break;
    case Doing::kSleeping:
      text = "sleeping";
      break;
    case Doing::kOnDevice:
      text = "waiting for a disk or a device";
      break;
    case Doing::kStopped:
      text = fmt::format("stopped by a signal (kill -CONT {} lets it go on)", pid);
      break;
    case Doing::kTraced:
      text = fmt::format("held by a debugger: {}", state.tracer);
      break;
    case Doing::kDumping:
      return "writing a core file";
  }
  if (!state.system_call.empty()) text += fmt::format(" in {}", state.system_call);
  if (state.running_threads != 0) {
    text += fmt::format(", while {} of its threads {}",
                        state.running_threads,
                        state.running_threads == 1 ? "runs" : "run");
  }
  if (!state.tracer.empty() && state.doing != Doing::kTraced) {
    text += fmt::format(", traced by {}", state.tracer);
  }
  return text;
}

}  // namespace hocket::os
