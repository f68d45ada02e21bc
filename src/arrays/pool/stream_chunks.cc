// Loads chunks in a second thread, ahead of their use.
#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "foundation/base/interrupt.h"
#include "foundation/base/threads.h"
#include "hocket/device_pool.h"

namespace hocket {
namespace {

// The state that the loading thread and the using thread share.
class Belt {
 public:
  explicit Belt(std::size_t buffers) : buffers_(buffers) {}

  // Returns false if the loading thread must stop.
  bool wait_for_room(std::size_t chunk) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || chunk < used_ + buffers_; });
    return !stopped_;
  }
  // Returns false if no load will come; `rethrow` then throws the reason.
  bool wait_for_load(std::size_t chunk) {
    std::unique_lock lock(mutex_);
    const auto ready = [&] { return stopped_ || chunk < loaded_; };
    while (!ready()) {
      const auto until = base::until_asked(base::Deadline::never());
      if (until.is_never()) {
        changed_.wait(lock, ready);
      } else if (!changed_.wait_until(lock, until.when(), ready)) {
        lock.unlock();
        base::throw_if_interrupted("streaming");
        lock.lock();
      }
    }
    return chunk < loaded_;
  }
  void loaded() { count(loaded_); }
  void used() { count(used_); }
  void stop(std::exception_ptr error) noexcept {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
      error_ = std::move(error);
    }
    changed_.notify_all();
  }
  [[noreturn]] void rethrow() const { std::rethrow_exception(error_); }

 private:
  void count(std::size_t& which) {
    {
      const std::lock_guard lock(mutex_);
      ++which;
    }
    changed_.notify_all();
  }

  const std::size_t buffers_;
  std::mutex mutex_;  // guards the rest
  std::condition_variable changed_;
  std::size_t loaded_ = 0, used_ = 0;
  bool stopped_ = false;
  std::exception_ptr error_;
};

// Ends the loading thread when the scope ends, also by an exception.
class Loader {
 public:
  template <typename F>
  Loader(Belt& belt, const F& f)
      : belt_(belt), thread_(std::move(base::start_threads(1, [f](int) { f(); }).front())) {}
  ~Loader() {
    if (!thread_.joinable()) return;
    belt_.stop({});
    thread_.join();
  }
  void join() { thread_.join(); }

 private:
  Belt& belt_;
  std::jthread thread_;
};

}  // namespace

void stream_chunks(std::size_t count,
                   const StreamOptions& options,
                   const ChunkFunction& load,
                   const ChunkFunction& use) {
  if (options.chunk < 1) throw InvalidArgument("chunk is 0, expected at least 1 item");
  if (options.buffers < 1) throw InvalidArgument("buffers is 0, expected at least 1");
  const std::size_t chunks = count / options.chunk + (count % options.chunk != 0 ? 1 : 0);
  const auto each = [&](std::size_t chunk, const ChunkFunction& f) {
    const std::size_t first = chunk * options.chunk;
    f(chunk % options.buffers, first, first + std::min(options.chunk, count - first));
  };
  Belt belt(options.buffers);
  Loader loader(belt, [&] {
    try {
      for (std::size_t i = 0; i < chunks && belt.wait_for_room(i); ++i) {
        each(i, load);
        belt.loaded();
      }
    } catch (...) {
      belt.stop(std::current_exception());
    }
  });
  for (std::size_t i = 0; i < chunks; ++i) {
    if (!belt.wait_for_load(i)) {
      loader.join();
      belt.rethrow();
    }
    each(i, use);
    belt.used();
  }
  loader.join();
}

}  // namespace hocket
