// Starts hocket's own threads, and throws a clear error if the system provides none.
#pragma once

#include <csignal>
#include <functional>
#include <thread>
#include <vector>

namespace hocket::base {

// Blocks all signals in this thread during its lifetime. A thread that is started meanwhile, also
// by a library, inherits the signal mask.
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

// Starts a thread that blocks all signals, because they belong to the program. Tools such as ps
// show `name`, which has at most 15 letters. Throws SystemError.
std::thread start_thread(const char* name, std::function<void()> body);

// Starts `count` threads. Each runs body(number), with numbers from 0. If one of them cannot start,
// no thread runs `body`, because it would wait for the missing ones. SystemError is then thrown.
std::vector<std::jthread> start_threads(int count, std::function<void(int)> body);

}  // namespace hocket::base
