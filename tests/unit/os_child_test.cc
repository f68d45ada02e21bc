// Runs code that may crash or hang in a child process.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "foundation/os/fd.h"
#include "foundation/os/machine/probe.h"

namespace hocket::os {
namespace {

constexpr int kLong = 120'000;  // ms

TEST(RunInChild, ReturnsWhatTheBodyDoes) {
  EXPECT_EQ(run_in_child([] { return std::string(100'000, 'x'); }, kLong),
            std::string(100'000, 'x'));
}

TEST(RunInChild, IsEmptyWhereTheChildDies) {
  EXPECT_FALSE(run_in_child([]() -> std::string { ::_exit(3); }, kLong));
  EXPECT_FALSE(run_in_child([]() -> std::string { throw 3; }, kLong));
}

TEST(RunInChild, KillsWhatTakesTooLong) {
  EXPECT_FALSE(run_in_child(
      [] {
        ::sleep(kLong);
        return std::string("never");
      },
      50));
}

void ignore(int) {}

TEST(RunInChild, KillsWhatTakesTooLongThoughSignalsCome) {
  const auto before = ::signal(SIGALRM, ignore);
  const itimerval often{.it_interval = {.tv_sec = 0, .tv_usec = 1000},
                        .it_value = {.tv_sec = 0, .tv_usec = 1000}};
  ASSERT_EQ(::setitimer(ITIMER_REAL, &often, nullptr), 0);
  EXPECT_FALSE(run_in_child(
      [] {
        ::sleep(kLong);
        return std::string("never");
      },
      50));
  const itimerval never{};
  ::setitimer(ITIMER_REAL, &never, nullptr);
  ::signal(SIGALRM, before);
}

// As `hocket doctor` may be, while it tries a library.
TEST(RunInChild, EndsWithItsParent) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    run_in_child(
        [&] {
          fork_bound_child();
          const pid_t own = ::getpid();
          if (::write(ends[1], &own, sizeof own) == sizeof own) ::sleep(kLong);
          return std::string();
        },
        kLong);
    ::_exit(0);
  }
  std::array<Fd, 2> watched;  // the child and its own child
  for (Fd& each : watched) {
    pid_t pid = 0;
    ASSERT_EQ(::read(ends[0], &pid, sizeof pid), static_cast<ssize_t>(sizeof pid));
    each = Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    ASSERT_GE(each.get(), 0);
  }
  ::kill(parent, SIGTERM);
  for (const Fd& each : watched) {
    pollfd ended{each.get(), POLLIN, 0};
    EXPECT_EQ(::poll(&ended, 1, kLong / 2), 1);
  }
  ::waitpid(parent, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace hocket::os
