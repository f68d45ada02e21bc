// The step between an exported function and the function that carries it.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "interfaces/mpi/failure.h"
#include "interfaces/mpi/objects.h"
#include "interfaces/mpi/pending.h"

namespace hocket::mpi {

// Whose error handler is told. A value.
struct Scope {
  MPI_Comm comm = MPI_COMM_NULL;
  bool is_of_file = false;
  MPI_File file = MPI_FILE_NULL;
  MPI_Session session = MPI_SESSION_NULL;
  MPI_Win win = MPI_WIN_NULL;
  static Scope of(MPI_File file) noexcept { return {MPI_COMM_NULL, true, file}; }
};

void require_running();
// Reports the exception that is being handled to the error handler, and returns its code.
int caught(const char* function, const Scope& scope) noexcept;
// Tells the error handler of the scope, and returns the code; some handlers end the job.
int tell_handler(const char* function, const Scope& scope, int code);
// The handle by which a program knows a handler.
MPI_Errhandler handle_of_errhandler(const std::shared_ptr<Errhandler>& handler);
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
// The same for functions that may be called before MPI_Init and after MPI_Finalize.
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

// Begins a partitioned message, or waits for its partitions.
Pending start_partitions(Request& request);
bool has_missing_partitions(const Request& request);

void fill(MPI_Status* status, const Outcome& outcome) noexcept;

// Numbers of entries in the arrays of a collective call, such as counts: one for each rank or
// neighbour. 0: the array need not be there on this rank.
struct ArrayLengths {
  std::size_t sent = 0, received = 0;
};
ArrayLengths lengths_among_all(MPI_Comm comm, const void* sendbuf);
ArrayLengths lengths_of_members(MPI_Comm comm);
ArrayLengths lengths_at_root(MPI_Comm comm, int root);
ArrayLengths lengths_of_neighbours(MPI_Comm comm);

// A copy of an array for a persistent request, because the program may free its own. A value.
template <typename T>
class CopiedArray {
 public:
  CopiedArray(const T* values, std::size_t count)
      : values_(values),
        copy_(values != nullptr && count != 0
                  ? std::make_shared<const std::vector<T>>(values, values + count)
                  : nullptr) {}
  const T* get() const noexcept { return copy_ ? copy_->data() : values_; }

 private:
  const T* values_;
  std::shared_ptr<const std::vector<T>> copy_;
};

}  // namespace hocket::mpi
