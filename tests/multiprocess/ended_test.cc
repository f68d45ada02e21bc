// The survivors' knowledge of how a rank ended: by which signal, with which code, or in good order.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <thread>

#include "ranks.h"

namespace hocket::multiprocess {
namespace {

// Older kernels forget how a process ended once its parent has taken note.
bool kernel_remembers() {
  utsname names{};
  uname(&names);
  int major = 0;
  int minor = 0;
  return sscanf(names.release, "%d.%d", &major, &minor) == 2 &&
         std::pair(major, minor) >= std::pair(6, 15);
}

// Rank 1 of three calls `end`; checks the others' errors. The first error waits at most 2 ms for
// such news, so calls are repeated until it has come.
void expect_told(const std::function<void()>& end, int signal, const std::string& manner) {
  SCOPED_TRACE(manner);
  if (!kernel_remembers()) GTEST_SKIP() << "a kernel before 6.15";
  const auto ranks =
      run_job({.size = 3},
              [&](Rank& rank) {
                World world = rank.join();
                auto& comm = world.communicator();
                comm.barrier();
                if (rank.rank() == 1) end();
                Outcome outcome = rank.attempt("first", [&] { comm.barrier(); });
                const auto latest = std::chrono::steady_clock::now() + std::chrono::seconds(20);
                while (outcome.message.find(manner) == std::string::npos &&
                       std::chrono::steady_clock::now() < latest) {
                  std::this_thread::sleep_for(std::chrono::milliseconds(1));
                  outcome = outcome_of([&] { comm.barrier(); });
                }
                rank.report("call", outcome);
                const auto status = comm.status();
                rank.check(status && status->code == ErrorCode::kPeerDied && status->peer == 1,
                           "the communicator's status is not the death of rank 1");
              },
              {1});
  const std::string told = fmt::format("rank 1 (pid {}) {}", ranks[1].pid, manner);
  for (const int i : {0, 2}) {
    const Result& rank = ranks[static_cast<std::size_t>(i)];
    EXPECT_EQ(rank.get("first"), "PeerDied");
    EXPECT_EQ(rank.get("call"), "PeerDied");
    EXPECT_EQ(rank.number("call.peer"), 1);
    EXPECT_EQ(rank.number("call.pid"), ranks[1].pid);
    EXPECT_EQ(rank.number("call.signal"), signal);
    EXPECT_EQ(rank.get("call.message").find(told), 0) << rank.get("call.message");
    EXPECT_TRUE(rank.number("first.signal") == signal || rank.number("first.signal") == 0)
        << rank.get("first.message");
  }
}

TEST(Ended, BySigkillIsTold) {
  expect_told([] { raise(SIGKILL); }, SIGKILL, "was killed by signal 9 (SIGKILL)");
}

TEST(Ended, BySigsegvIsTold) {
  const auto crash = [] {
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
  };
  expect_told(crash, SIGSEGV, "was killed by signal 11 (SIGSEGV)");
}

TEST(Ended, BySigtermIsTold) {
  expect_told([] { raise(SIGTERM); }, SIGTERM, "was killed by signal 15 (SIGTERM)");
}

// A rank with several threads, ended by a thread other than its first.
TEST(Ended, ByAnotherThreadIsTold) {
  const auto crash = [] {
    std::thread([] { kill(getpid(), SIGKILL); }).detach();
    for (;;) pause();
  };
  expect_told(crash, SIGKILL, "was killed by signal 9 (SIGKILL)");
}

TEST(Ended, WithoutAWordIsToldWithTheCode) {
  expect_told([] { _exit(3); }, 0, "exited with code 3 and without leaving the job");
  expect_told([] { _exit(0); }, 0, "exited with code 0 and without leaving the job");
}

// The process goes on, but the rank is gone with its memory and its thread.
TEST(Ended, ByExecIsToldForWhatItIs) {
  expect_told([] { execl("/bin/sleep", "sleep", "3", nullptr); },
              0,
              "replaced itself by another program (exec)");
}

// Without closing, but by way of exit: no crash.
TEST(Ended, ByExitIsNoCrash) {
  expect_told([] { exit(0); }, 0, "ended in good order");
  expect_told([] { exit(3); }, 0, "ended with exit status 3");
}

}  // namespace
}  // namespace hocket::multiprocess
