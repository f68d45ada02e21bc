// What stands between an exported function and what carries it.
#pragma once

#include <functional>

#include "interfaces/mpi/failure.h"
#include "interfaces/mpi/pending.h"

namespace hocket::mpi {

// Whose error handler is told. A value.
struct Scope {
  MPI_Comm comm = MPI_COMM_NULL;
  bool returns = false;  // files: errors are returned
  static Scope of_files() noexcept { return {MPI_COMM_NULL, true}; }
};

void require_running();
// Of what is being caught: tells the handler, and returns the code.
int caught(const char* function, const Scope& scope) noexcept;
int not_carried(const char* function, const Scope& scope) noexcept;

template <typename F>
int guarded(const char* function, const Scope& scope, F&& f) noexcept {
  try {
    require_running();
    f();
    return MPI_SUCCESS;
  } catch (...) {
    return caught(function, scope);
  }
}
// Of calls before MPI_Init and after MPI_Finalize, too.
template <typename F>
int guarded_always(const char* function, const Scope& scope, F&& f) noexcept {
  try {
    f();
    return MPI_SUCCESS;
  } catch (...) {
    return caught(function, scope);
  }
}

// Waits for what has begun, and fills the status.
void complete(Pending pending, MPI_Status* status);
void hand_out(MPI_Request* request, Pending pending, const Scope& scope);
void hand_out_persistent(MPI_Request* request, std::function<Pending()> begin, const Scope& scope);

void fill(MPI_Status* status, const Outcome& outcome) noexcept;

}  // namespace hocket::mpi
