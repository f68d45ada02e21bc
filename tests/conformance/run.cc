#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "engines.h"

namespace hocket::conformance {
namespace {

constexpr std::chrono::seconds kWatchdog{60};
constexpr std::uint64_t kSpins = 32;
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
  std::this_thread::yield();
  if (polls_ % kLookEvery != 0) return;
  if (seat_.board->failed.load(std::memory_order_relaxed)) throw AnotherFailed{};
  const auto now = std::chrono::steady_clock::now();
  if (since_ == std::chrono::steady_clock::time_point{}) since_ = now;
  if (now - since_ < kWatchdog) return;
  std::fprintf(
      stderr, "watchdog: rank %d of %d is stuck in %s\n", seat_.rank, seat_.size, what_.c_str());
  std::abort();
}

void drive(const Seat& seat, engine::Task& task, const std::string& what) {
  Wait wait(seat, what);
  while (task.step() == engine::Poll::kPending) wait.pause();
}

engine::Envelope complete(const Seat& seat, engine::MessageId message, const std::string& what) {
  Wait wait(seat, what);
  engine::Envelope received;
  while (!seat.messages->test(message, &received)) {
    seat.messages->progress();
    wait.pause();
  }
  return received;
}

std::string run_threads(int size, std::unique_ptr<Team> team, const Body& body) {
  Board board;
  std::mutex mutex;
  std::string failure;  // guarded by mutex
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    Seat seat = team->seat(rank);
    seat.board = &board;
    threads.emplace_back([&, seat] {
      try {
        body(seat);
      } catch (...) {
        const std::string text = text_of(std::current_exception());
        board.failed.store(true, std::memory_order_relaxed);
        const std::lock_guard lock(mutex);
        if (failure.empty() && !text.empty()) {
          failure = "rank " + std::to_string(seat.rank) + ": " + text;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return failure;
}

}  // namespace hocket::conformance
