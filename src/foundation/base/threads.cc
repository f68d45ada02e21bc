#include "foundation/base/threads.h"

#include <fmt/format.h>
#include <pthread.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <latch>
#include <memory>
#include <system_error>
#include <utility>

#include "hocket/error.h"

namespace hocket::base {
namespace {

// The least stack of a thread, for hocket's own functions and the libraries that they call.
constexpr std::size_t kLeastStack = std::size_t{128} << 10;

// Throws if new threads would get too small a stack, which `ulimit -s` limits. They would crash
// later.
void require_stack() {
  pthread_attr_t defaults;
  if (pthread_getattr_default_np(&defaults) != 0) return;
  std::size_t bytes = kLeastStack;
  pthread_attr_getstacksize(&defaults, &bytes);
  pthread_attr_destroy(&defaults);
  if (bytes >= kLeastStack) return;
  throw SystemError(
      fmt::format("cannot start threads: their stacks are limited to {} KiB, and need "
                  "{} KiB; raise the limit: ulimit -s 8192",
                  bytes >> 10,
                  kLeastStack >> 10),
      ENOMEM);
}

// The gate at which new threads wait until all of them have started. `body` and `all_are_there` are
// written before `open` is counted down, and read after it.
struct Gate {
  std::function<void(int)> body;
  std::latch open{1};
  bool all_are_there = false;
};

// Opens the gate, also after an exception. Otherwise the threads that wait at it could not be
// joined.
struct Opener {
  Gate& gate;
  ~Opener() { gate.open.count_down(); }
};

}  // namespace

SignalsBlocked::SignalsBlocked() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before_);
}

SignalsBlocked::~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

std::thread start_thread(const char* name, std::function<void()> body) {
  require_stack();
  const SignalsBlocked blocked;
  try {
    std::thread thread(std::move(body));
    pthread_setname_np(thread.native_handle(), name);
    return thread;
  } catch (const std::system_error& error) {
    throw SystemError(
        fmt::format("cannot start the thread \"{}\" (see `ulimit -u`, which counts the threads of "
                    "all processes of this user, and `ulimit -v` and `-d`)",
                    name),
        error.code().value());
  }
}

std::vector<std::jthread> start_threads(int count, std::function<void(int)> body) {
  require_stack();
  const auto gate = std::make_shared<Gate>();
  gate->body = std::move(body);
  std::vector<std::jthread> threads;
  const Opener opener{*gate};  // destroyed before `threads`
  threads.reserve(static_cast<std::size_t>(count));
  try {
    for (int i = 0; i < count; ++i) {
      threads.emplace_back([gate, i] {
        gate->open.wait();
        if (gate->all_are_there) gate->body(i);
      });
    }
  } catch (const std::system_error& error) {
    throw SystemError(fmt::format("cannot start thread {} of {} (see `ulimit -u`, `-v` and `-d`)",
                                  threads.size() + 1,
                                  count),
                      error.code().value());
  }
  gate->all_are_there = true;
  return threads;
}

}  // namespace hocket::base
