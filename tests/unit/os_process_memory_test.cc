// Writes to another process's memory: only under a valid permit, and never after a suspension.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "foundation/base/atomic.h"
#include "foundation/os/process/process_memory.h"

namespace hocket::os {
namespace {

struct Shared {
  base::Atomic<std::uint64_t> ticket{0};
  base::Atomic<std::uint32_t> owner{0};
  base::Atomic<std::uint64_t> copying{0};
  base::Atomic<std::uint64_t> writes{0};

  WritePermit permit(std::uint64_t valid) const {
    return {.ticket = reinterpret_cast<const volatile std::uint64_t*>(&ticket),
            .valid = valid,
            .owner = reinterpret_cast<const volatile std::uint32_t*>(&owner)};
  }
};

Shared& shared_memory() {
  void* const memory =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return *new (memory) Shared;
}

class WriteProcessMemory : public testing::Test {
 protected:
  void SetUp() override {
    std::uint64_t landing = 0;
    const std::uint64_t word = 7;
    shared_.ticket = 1;
    const int error =
        write_process_memory(::getpid(), &landing, &word, sizeof word, shared_.permit(1));
    if (error != 0) GTEST_SKIP() << "not possible here: " << std::strerror(error);
    ASSERT_EQ(landing, 7U);
  }

  Shared& shared_ = shared_memory();
  std::vector<std::byte> from_ = std::vector<std::byte>(1 << 20, std::byte{3});
  std::vector<std::byte> to_ = std::vector<std::byte>(1 << 20, std::byte{0});

  int write(std::uint64_t valid) {
    return write_process_memory(
        ::getpid(), to_.data(), from_.data(), to_.size(), shared_.permit(valid));
  }
  bool is_untouched() const {
    return std::ranges::all_of(to_, [](std::byte each) { return each == std::byte{0}; });
  }
};

TEST_F(WriteProcessMemory, CopiesAllUnderAValidPermit) {
  EXPECT_EQ(write(1), 0);
  EXPECT_EQ(to_, from_);
}

TEST_F(WriteProcessMemory, CopiesNothingUnderAnotherTicket) {
  EXPECT_EQ(write(2), ECANCELED);
  EXPECT_TRUE(is_untouched());
}

TEST_F(WriteProcessMemory, CopiesNothingToARankThatHasDied) {
  shared_.owner = 0x40000000;
  EXPECT_EQ(write(1), ECANCELED);
  EXPECT_TRUE(is_untouched());
}

TEST_F(WriteProcessMemory, ReportsMemoryThatIsNotThere) {
  void* const hole = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_EQ(write_process_memory(::getpid(), hole, from_.data(), 16, shared_.permit(1)), EFAULT);
  ::munmap(hole, 4096);
}

TEST_F(WriteProcessMemory, ReportsAProcessThatIsGone) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(write_process_memory(child, to_.data(), from_.data(), 16, shared_.permit(1)), ESRCH);
  EXPECT_TRUE(has_process_ended(child));
  EXPECT_FALSE(has_process_ended(::getpid()));
}

// A zombie has ended: its last thread is gone.
TEST_F(WriteProcessMemory, ANewZombieHasEnded) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(has_process_ended(child));
  ::waitpid(child, nullptr, 0);
}

// Signals between the look and the copy make the writer look again, and nothing is lost.
TEST_F(WriteProcessMemory, GoesOnUnderManySignals) {
  struct sigaction action{};
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  struct sigaction before{};
  ::sigaction(SIGALRM, &action, &before);
  const itimerval often{.it_interval = {0, 50}, .it_value = {0, 50}};
  ::setitimer(ITIMER_REAL, &often, nullptr);
  for (int round = 1; round <= 2000; ++round) {
    from_.resize(4096);
    std::ranges::fill(from_, static_cast<std::byte>(round));
    ASSERT_EQ(write_process_memory(::getpid(), to_.data(), from_.data(), 4096, shared_.permit(1)),
              0);
    ASSERT_TRUE(std::equal(from_.begin(), from_.end(), to_.begin()));
  }
  const itimerval never{};
  ::setitimer(ITIMER_REAL, &never, nullptr);
  ::sigaction(SIGALRM, &before, nullptr);
}

// A writer is stopped at random moments. While it stands still, the permit is withdrawn and the
// memory is used for something else. When the writer goes on, it must not write there.
TEST_F(WriteProcessMemory, AStoppedWriterDoesNotWriteLater) {
  const pid_t owner = ::getpid();
  const pid_t writer = ::fork();
  if (writer == 0) {
    for (;;) {
      shared_.copying.store(1, std::memory_order_seq_cst);
      // Short, so that much of the time lies between the look and the copy.
      write_process_memory(owner, to_.data(), from_.data(), 64, shared_.permit(1));
      shared_.copying.store(0, std::memory_order_seq_cst);
      shared_.writes.fetch_add(1);
    }
  }
  std::mt19937 random(1);
  const auto stop = [&] {
    ::kill(writer, SIGSTOP);
    int status = 0;
    ASSERT_EQ(::waitpid(writer, &status, WUNTRACED), writer);
    ASSERT_TRUE(WIFSTOPPED(status));
  };
  const auto wait_for_writes = [&](std::uint64_t count) {
    const std::uint64_t wanted = shared_.writes.load() + count;
    while (shared_.writes.load() < wanted) std::this_thread::yield();
  };
  int stopped_inside = 0;
  for (int round = 0; round < 100; ++round) {
    shared_.ticket.store(1);
    wait_for_writes(1);
    const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(random() % 60);
    while (std::chrono::steady_clock::now() < until) {
    }
    stop();
    stopped_inside += shared_.copying.load() != 0 ? 1 : 0;
    shared_.ticket.store(0);
    std::memset(to_.data(), 0, 64);
    ::kill(writer, SIGCONT);
    wait_for_writes(2);
    ASSERT_EQ(to_[0], std::byte{0}) << "round " << round;
  }
  ::kill(writer, SIGKILL);
  ::waitpid(writer, nullptr, 0);
  EXPECT_GT(stopped_inside, 0) << "no round tested it";
}

}  // namespace
}  // namespace hocket::os
