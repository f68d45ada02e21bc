#include "hocket/run_clock.h"

#include <pthread.h>
#include <time.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <thread>

#include "foundation/base/beats.h"
#include "foundation/base/threads.h"

namespace hocket {
namespace {

constexpr std::chrono::milliseconds kBetweenBeats{50};

// The clock of this process, which all its worlds, stores and launchers use.
constinit base::Beats beats;

std::int64_t steady_ns() noexcept {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The kernel updates this clock at each of its ticks, 100 to 1,000 times a second.
std::int64_t coarse_steady_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// The thread `hocket-clock`, and the number of its users. The object is never destroyed, because
// the thread may still run while the process ends.
class Beating {
 public:
  // Starts the thread if there is none. If the system refuses the thread, the next call tries
  // again.
  void hold() noexcept {
    const std::lock_guard lock(holders_mutex_);
    ++holders_;
    if (thread_.joinable()) return;
    stops_ = false;
    beats.beat(steady_ns());
    try {
      thread_ = base::start_thread("hocket-clock", [this] { run(); });
    } catch (const std::exception&) {
      beats.end();
    }
  }
  void release() noexcept {
    const std::lock_guard lock(holders_mutex_);
    if (--holders_ != 0 || !thread_.joinable()) return;
    {
      const std::lock_guard sleep_lock(mutex_);
      stops_ = true;
    }
    stop_.notify_all();
    thread_.join();
    beats.end();
  }

 private:
  void run() noexcept {
    std::unique_lock lock(mutex_);
    while (!stops_) {
      beats.beat(steady_ns());
      stop_.wait_for(lock, kBetweenBeats);
    }
  }

  std::mutex holders_mutex_;
  int holders_ = 0;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stops_ = false;  // guarded by mutex_ while the thread runs
};

std::atomic<Beating*> beating_now{nullptr};

// A forked child has no thread `hocket-clock`. It makes a new Beating when it needs one.
void forget_in_child() noexcept {
  beating_now.store(nullptr, std::memory_order_relaxed);
  beats.end();
}

// Returns this process's Beating, made at the first call. Null if memory is exhausted.
Beating* beating() noexcept {
  static const int registered = ::pthread_atfork(nullptr, nullptr, forget_in_child);
  if (registered != 0) return nullptr;
  Beating* found = beating_now.load(std::memory_order_acquire);
  if (found != nullptr) return found;
  auto* made = new (std::nothrow) Beating;
  if (made == nullptr || beating_now.compare_exchange_strong(found, made)) return made;
  delete made;
  return found;
}

}  // namespace

std::int64_t base::coarse_run_time() noexcept { return beats.time(coarse_steady_ns); }

RunClock::time_point RunClock::now() noexcept {
  return time_point(duration(beats.time(steady_ns)));
}

RunClock::Watch::Watch() noexcept : thread_(beating()) {
  if (thread_ != nullptr) static_cast<Beating*>(thread_)->hold();
}

RunClock::Watch::~Watch() {
  if (thread_ == nullptr || thread_ != beating_now.load(std::memory_order_acquire)) return;
  static_cast<Beating*>(thread_)->release();
}

}  // namespace hocket
