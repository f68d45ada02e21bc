// Starts the face's own threads.
#pragma once

#include <pthread.h>

#include <csignal>
#include <thread>
#include <utility>

namespace hocket::mpi {

// Blocks all signals in this thread during its lifetime. A thread that is started meanwhile
// inherits the signal mask.
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

// Starts a thread that blocks all signals, because they belong to the program.
template <typename Body>
std::thread start_thread(Body body) {
  const SignalsBlocked blocked;
  return std::thread(std::move(body));
}

}  // namespace hocket::mpi
