// The layer between an exported MPI function and the function that does its work.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "interfaces/mpi/failure.h"
#include "interfaces/mpi/handles.h"
#include "interfaces/mpi/messages/pending.h"
#include "interfaces/mpi/objects.h"

namespace hocket::mpi {

// The object whose error handler is called on an error. A value.
struct Scope {
  MPI_Comm comm = MPI_COMM_NULL;
  bool is_of_file = false;
  MPI_File file = MPI_FILE_NULL;
  MPI_Session session = MPI_SESSION_NULL;
  MPI_Win win = MPI_WIN_NULL;
  static Scope of(MPI_File file) noexcept { return {MPI_COMM_NULL, true, file}; }
};

void require_running();
// Reports the current exception to the error handler, and returns its code.
int caught(const char* function, const Scope& scope) noexcept;
// Calls the error handler of the scope, and returns the code. Some handlers end the job.
int tell_handler(const char* function, const Scope& scope, int code);
// Returns the program's handle of an error handler.
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
// Does the same for functions that may be called before MPI_Init and after MPI_Finalize.
template <typename F>
int guarded_always(const char* function, const Scope& scope, F&& f) noexcept {
  try {
    f();
    return MPI_SUCCESS;
  } catch (...) {
    return caught(function, scope);
  }
}

// Waits for a call that has begun, and fills the status.
void complete(Pending pending, MPI_Status* status);
void hand_out(MPI_Request* request, Pending pending, const Scope& scope);
// Makes a request that has ended once `poll` returns true or throws.
void hand_out_polled(MPI_Request* request, std::function<bool()> poll, const Scope& scope);
void hand_out_persistent(MPI_Request* request, std::function<Pending()> begin, const Scope& scope);

// Starts a partitioned request. Returns its message if the message can begin at once, else an empty
// Pending. has_missing_partitions returns whether the message has not begun. It begins a receive
// whose offer has come.
Pending start_partitions(Request& request);
bool has_missing_partitions(Request& request);
// Returns whether a request has ended, also by a failure, whose code its outcome has then. Never
// blocks.
bool is_over(Request& request);

void fill(MPI_Status* status, const Outcome& outcome) noexcept;

// Numbers of entries in the arrays of a collective call, such as counts: one for each rank or
// neighbour. 0: the call does not read the array on this rank.
struct ArrayLengths {
  std::size_t sent = 0, received = 0;
};
ArrayLengths lengths_among_all(MPI_Comm comm, const void* sendbuf);
ArrayLengths lengths_of_members(MPI_Comm comm);
ArrayLengths lengths_at_root(MPI_Comm comm, int root);
ArrayLengths lengths_of_neighbours(MPI_Comm comm);

// A copy of a program's array for a persistent request, because the program may free the array. A
// value.
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

// A second handle of an object, for a persistent request: the program may free its handle while the
// request still needs the object. A value; copies share the second handle.
template <typename Handle>
class OwnHandle {
 public:
  template <typename Object>
  OwnHandle(Handle handle, Handles<Object, Handle>& objects) : handle_(handle) {
    // An invalid handle fails in its use.
    if (!objects.is_own(handle) || objects.find(handle) == nullptr) return;
    handle_ = objects.add(objects.share(handle));
    end_ =
        std::shared_ptr<void>(nullptr, [&objects, own = handle_](void*) { objects.remove(own); });
  }
  Handle get() const noexcept { return handle_; }

 private:
  Handle handle_;
  std::shared_ptr<void> end_;
};
// Second handles for an array of types.
class OwnTypes {
 public:
  OwnTypes(const MPI_Datatype* types, std::size_t count);
  const MPI_Datatype* get() const noexcept { return handles_.get(); }

 private:
  std::vector<OwnHandle<MPI_Datatype>> owners_;
  CopiedArray<MPI_Datatype> handles_;
};

// A duplicate of a communicator for a persistent collective request, because ranks may start such
// requests in different orders. A value; copies share it.
class OwnComm {
 public:
  explicit OwnComm(MPI_Comm parent);
  MPI_Comm get() const noexcept { return *handle_; }

 private:
  std::shared_ptr<const MPI_Comm> handle_;
};

}  // namespace hocket::mpi
