#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "engines.h"

namespace hocket::conformance {
namespace {

constexpr std::chrono::seconds kWatchdog{60};
constexpr std::uint64_t kSpins = 32;
constexpr std::uint64_t kYields = 128;
// A thread that has slept is scheduled sooner than one that has yielded, if many want the
// processor.
constexpr std::chrono::microseconds kNap{20};
constexpr std::uint64_t kLookEvery = 256;

struct AnotherFailed {};

std::string text_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return e.what();
  } catch (const engine::EnvelopeMismatch& e) {
    return "EnvelopeMismatch: " + std::to_string(e.expected.count) + " elements expected of rank " +
           std::to_string(e.expected.peer) + ", " + std::to_string(e.received.count) + " received";
  } catch (const AnotherFailed&) {
    return "";
  } catch (...) {
    return "an unknown exception";
  }
}

}  // namespace

void Wait::pause() {
  if (++polls_ < kSpins) return;
  if (polls_ < kYields) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(kNap);
  }
  if (polls_ % kLookEvery != 0) return;
  if (self_.board->failed.load(std::memory_order_relaxed)) throw AnotherFailed{};
  const auto now = std::chrono::steady_clock::now();
  if (since_ == std::chrono::steady_clock::time_point{}) since_ = now;
  if (now - since_ < kWatchdog) return;
  std::fprintf(
      stderr, "watchdog: rank %d of %d is stuck in %s\n", self_.rank, self_.size, what_.c_str());
  std::abort();
}

void drive(const EngineRank& self, engine::Task& task, const std::string& what) {
  Wait wait(self, what);
  while (task.step() == engine::Poll::kPending) wait.pause();
}

engine::Envelope complete(const EngineRank& self,
                          engine::MessageId message,
                          const std::string& what) {
  Wait wait(self, what);
  engine::Envelope received;
  while (!self.messages->test(message, &received)) {
    self.messages->progress();
    wait.pause();
  }
  return received;
}

engine::Envelope await_message(const EngineRank& self,
                               const engine::Envelope& wanted,
                               const std::string& what) {
  Wait wait(self, what);
  for (;;) {
    if (const auto waiting = self.messages->waiting(wanted)) return *waiting;
    self.messages->progress();
    wait.pause();
  }
}

std::string run_threads(int size, std::unique_ptr<Team> team, const Body& body) {
  Board board;
  std::mutex mutex;
  std::string failure;  // guarded by mutex
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    EngineRank self = team->make_rank(rank);
    self.board = &board;
    threads.emplace_back([&, self] {
      try {
        body(self);
      } catch (...) {
        const std::string text = text_of(std::current_exception());
        board.failed.store(true, std::memory_order_relaxed);
        const std::lock_guard lock(mutex);
        if (failure.empty() && !text.empty()) {
          failure = "rank " + std::to_string(self.rank) + ": " + text;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return failure;
}

namespace {

// State that the processes of a run share.
struct Shared {
  Board board;
  std::array<char[1024], kMostRanks>
      failures{};  // of each rank; empty: none, or the fault of others
};

// Ends the process without any clean-up: what was inherited is the parent's.
[[noreturn]] void be_rank(int rank,
                          Shared& shared,
                          const std::function<std::unique_ptr<Team>(int rank)>& make,
                          const Body& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    const std::unique_ptr<Team> team = make(rank);
    EngineRank self = team->make_rank(rank);
    self.board = &shared.board;
    body(self);
  } catch (...) {
    const std::string text = text_of(std::current_exception());
    auto& failure = shared.failures[static_cast<std::size_t>(rank)];
    std::strncpy(failure, text.c_str(), sizeof(failure) - 1);
    shared.board.failed.store(true, std::memory_order_relaxed);
    _exit(1);
  }
  _exit(0);
}

}  // namespace

std::string run_processes(int size,
                          const std::function<std::unique_ptr<Team>(int rank)>& make,
                          const Body& body) {
  void* memory =
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("mmap failed");
  auto* shared = new (memory) Shared;
  std::vector<pid_t> children;
  for (int rank = 0; rank < size; ++rank) {
    const pid_t child = fork();
    if (child == 0) be_rank(rank, *shared, make, body);
    children.push_back(child);
  }
  std::string first, ended;
  for (int rank = 0; rank < size; ++rank) {
    int status = 0;
    const bool waited = waitpid(children[static_cast<std::size_t>(rank)], &status, 0) > 0;
    const std::string name = "rank " + std::to_string(rank) + ": ";
    const char* failure = shared->failures[static_cast<std::size_t>(rank)];
    if (failure[0] != '\0' && first.empty()) first = name + failure;
    if (!waited || !WIFEXITED(status)) {
      ended += name + "ended by signal " + std::to_string(WTERMSIG(status)) + "; ";
      shared->board.failed.store(true, std::memory_order_relaxed);
    } else if (WEXITSTATUS(status) != 0 && first.empty()) {
      ended += name + "exit code " + std::to_string(WEXITSTATUS(status)) + "; ";
    }
  }
  munmap(memory, sizeof(Shared));
  return first.empty() ? ended : first;
}

}  // namespace hocket::conformance
