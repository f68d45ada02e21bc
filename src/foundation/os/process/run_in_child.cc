#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>

#include "foundation/os/machine/probe.h"

namespace hocket::os {
namespace {

using Clock = std::chrono::steady_clock;

// Reads until the other end of the pipe is closed. Absent at the deadline.
std::optional<std::string> read_until(int fd, Clock::time_point deadline) {
  std::string text;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd wait{fd, POLLIN, 0};
    if (left <= 0) return {};
    if (::poll(&wait, 1, static_cast<int>(left)) <= 0) continue;  // it may be a signal
    std::array<char, 4096> buffer;
    const ssize_t length = ::read(fd, buffer.data(), buffer.size());
    if (length < 0 && errno == EINTR) continue;
    if (length <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(length));
  }
}

[[noreturn]] void be_child(const std::function<std::string()>& body, int end) {
  // If this process had closed a standard descriptor, the pipe may have its number, which dup2
  // below would replace. So the pipe gets a number above 2.
  const int fd = ::fcntl(end, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  // Discards the output of `body`, such as that of a library that it loads.
  const int null = ::open("/dev/null", O_RDWR);
  ::dup2(null, STDOUT_FILENO);
  ::dup2(null, STDERR_FILENO);
  int exit_code = 1;
  try {
    const std::string text = body();
    exit_code = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1;
  } catch (...) {  // an exception cannot cross processes: the exit code tells of it
  }
  ::_exit(exit_code);
}

}  // namespace

pid_t fork_bound_child() {
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
  if (::getppid() != parent) ::_exit(1);  // the parent died before prctl took effect
  return 0;
}

std::optional<std::string> run_in_child(const std::function<std::string()>& body,
                                        int milliseconds) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  const pid_t pid = fork_bound_child();
  if (pid == 0) {
    ::close(ends[0]);
    be_child(body, ends[1]);
  }
  ::close(ends[1]);
  std::optional<std::string> text;
  if (pid > 0) {
    text = read_until(ends[0], Clock::now() + std::chrono::milliseconds(milliseconds));
    if (!text) ::kill(pid, SIGKILL);
    int status = 0;
    while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (status != 0) text.reset();
  }
  ::close(ends[0]);
  return text;
}

}  // namespace hocket::os
