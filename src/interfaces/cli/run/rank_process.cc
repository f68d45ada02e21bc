#include "interfaces/cli/run/rank_process.h"

#include <dirent.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>

namespace hocket::cli {
namespace {

void close_on_exec_from(int first) {
  if (::syscall(SYS_close_range, first, ~0u, CLOSE_RANGE_CLOEXEC) == 0) return;
  // close_range was refused, or the kernel is older than 5.11. This closes only open descriptors,
  // because the limit of their number may be a thousand million.
  DIR* open = ::opendir("/proc/self/fd");
  const long limit = open == nullptr ? ::sysconf(_SC_OPEN_MAX) : 0;
  while (const dirent* entry = open == nullptr ? nullptr : ::readdir(open)) {
    const int fd = std::atoi(entry->d_name);
    if (fd >= first) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  }
  if (open != nullptr) ::closedir(open);
  for (int fd = first; fd < limit; ++fd) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

// Duplicates `fd` to the number `place`, without close-on-exec.
bool place(int fd, int place) {
  if (fd == place) return ::fcntl(fd, F_SETFD, 0) == 0;
  return ::dup2(fd, place) == place;
}

void reset_signals(const sigset_t& mask) {
  // exec resets handlers, but not signals that the launcher ignores. Signals that were ignored when
  // the launcher was started (nohup) stay ignored.
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGCHLD, SIG_DFL);
  std::signal(SIGXFSZ, SIG_DFL);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
}

// Becomes the rank's program. Returns only if something failed, with errno.
void become_rank(LaunchPlan& plan, RankPlan& rank, pid_t guardian, char** arguments, char** env) {
  ::setpgid(0, rank.own_process_group ? 0 : plan.foreground_group);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (::getppid() != guardian) ::_exit(1);  // the guardian died before the line above
  // No source is below 3, so none is overwritten before it is duplicated. The key comes last.
  if (!place(rank.in.get(), STDIN_FILENO) || !place(rank.out.get(), STDOUT_FILENO) ||
      !place(rank.err.get(), STDERR_FILENO) || !place(plan.key.get(), kKeyFd)) {
    return;
  }
  close_on_exec_from(kKeyFd + 1);
  if (rank.cpus) rank.cpus->restrict_this_thread();
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) == 0) {
    files.rlim_cur = plan.open_files;
    ::setrlimit(RLIMIT_NOFILE, &files);
  }
  reset_signals(plan.signal_mask);
  ::execve(plan.program.c_str(), arguments, env);
}

}  // namespace

pid_t start_rank(LaunchPlan& plan, std::size_t index, int failures) {
  RankPlan& rank = plan.ranks[index];
  std::vector<char*> arguments;
  for (std::string& argument : plan.arguments) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  std::vector<char*> environment = rank.environment.pointers();
  const pid_t guardian = ::getpid();
  const pid_t pid = ::fork();
  if (pid != 0) {
    // The parent does this, too, so that the group exists before a signal is sent to it.
    if (pid > 0 && rank.own_process_group) ::setpgid(pid, pid);
    return pid;
  }
  become_rank(plan, rank, guardian, arguments.data(), environment.data());
  const StartFailure failure{rank.rank, errno};
  [[maybe_unused]] const ssize_t written = ::write(failures, &failure, sizeof failure);
  ::_exit(127);
}

}  // namespace hocket::cli
