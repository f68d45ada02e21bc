// Starts the face's own threads.
#pragma once

#include <pthread.h>

#include <csignal>
#include <system_error>
#include <thread>
#include <utility>

#include "hocket/error.h"

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

// Starts a thread that blocks all signals, because they belong to the program. Throws SystemError
// if the system refuses the thread.
template <typename Body>
std::thread start_thread(Body body) {
  const SignalsBlocked blocked;
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error& error) {
    throw SystemError(
        "cannot start a thread for an MPI call (see `ulimit -u`, which counts the threads of all "
        "processes of this user, and `ulimit -v` and `-d`)",
        error.code().value());
  }
}

}  // namespace hocket::mpi
