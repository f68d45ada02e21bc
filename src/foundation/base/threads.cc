#include "foundation/base/threads.h"

#include <fmt/format.h>
#include <pthread.h>

#include <csignal>
#include <latch>
#include <memory>
#include <system_error>
#include <utility>

#include "hocket/error.h"

namespace hocket::base {
namespace {

struct Gate {
  std::function<void(int)> body;
  std::latch open{1};          // written before `open`, read after it
  bool all_are_there = false;  // written before `open`, read after it
};

// Opens the gate in any case. Threads that wait at it could not be joined otherwise.
struct Opener {
  Gate& gate;
  ~Opener() { gate.open.count_down(); }
};

// New threads inherit the signal mask of the thread that starts them.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

std::thread start_thread(const char* name, std::function<void()> body) {
  const SignalsBlocked blocked;
  try {
    std::thread thread(std::move(body));
    pthread_setname_np(thread.native_handle(), name);
    return thread;
  } catch (const std::system_error& error) {
    throw SystemError(
        fmt::format("cannot start the thread \"{}\" (see `ulimit -u`, which counts the threads of "
                    "all processes of this user, and `ulimit -v`)",
                    name),
        error.code().value());
  }
}

std::vector<std::jthread> start_threads(int count, std::function<void(int)> body) {
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
    throw SystemError(fmt::format("cannot start thread {} of {} (see `ulimit -u` and `ulimit -v`)",
                                  threads.size() + 1,
                                  count),
                      error.code().value());
  }
  gate->all_are_there = true;
  return threads;
}

}  // namespace hocket::base
