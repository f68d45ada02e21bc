// Trying in a child process what may crash or hang.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

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

// As `hocket doctor` may be, while it tries a library.
TEST(RunInChild, EndsWithItsParent) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const pid_t parent = ::fork();
  if (parent == 0) {
    run_in_child(
        [&] {
          const pid_t own = ::getpid();
          if (::write(ends[1], &own, sizeof own) == sizeof own) ::sleep(kLong);
          return std::string();
        },
        kLong);
    ::_exit(0);
  }
  pid_t child = 0;
  ASSERT_EQ(::read(ends[0], &child, sizeof child), static_cast<ssize_t>(sizeof child));
  const Fd watched(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  ASSERT_GE(watched.get(), 0);
  ::kill(parent, SIGTERM);
  pollfd ended{watched.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&ended, 1, kLong / 2), 1);
  ::waitpid(parent, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
}

}  // namespace
}  // namespace hocket::os
