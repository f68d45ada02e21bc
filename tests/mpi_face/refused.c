// The system refuses a thread that a call needs. The call fails, or its request; both say why.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <mpi.h>
#include <pthread.h>
#include <string.h>

#include "check.h"

static int refuses = 0, refused = 0;

// The libraries call this function, too.
int pthread_create(pthread_t* thread,
                   const pthread_attr_t* attributes,
                   void* (*body)(void*),
                   void* argument) {
  int (*create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  if (refuses) {
    ++refused;
    return EAGAIN;
  }
  *(void**)&create = dlsym(RTLD_NEXT, "pthread_create");
  return create(thread, attributes, body, argument);
}

// The request ends with the error, and the communicator may be freed.
static void a_duplicate_that_gets_no_thread(void) {
  MPI_Comm made;
  MPI_Request request;
  for (int way = 0; way < 3; ++way) {
    int flag = 0, code = MPI_SUCCESS;
    MPI_Status status;
    refuses = 1;
    OK(MPI_Comm_idup(MPI_COMM_WORLD, &made, &request));
    refuses = 0;
    CHECK(refused == way + 1 && made != MPI_COMM_NULL && request != MPI_REQUEST_NULL);
    if (way == 0) code = MPI_Wait(&request, &status);
    if (way == 1) code = MPI_Test(&request, &flag, &status);
    if (way == 2) {
      code = MPI_Waitall(1, &request, &status);
      CHECK(error_class(code) == MPI_ERR_IN_STATUS);
      code = status.MPI_ERROR;
    }
    TELLS(code, MPI_ERR_OTHER, "cannot start a thread");
    CHECK(request == MPI_REQUEST_NULL);
    OK(MPI_Comm_free(&made));
  }
  OK(MPI_Comm_idup(MPI_COMM_WORLD, &made, &request));
  OK(MPI_Wait(&request, MPI_STATUS_IGNORE));
  int sum = 0;
  OK(MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, made));
  CHECK(sum == size * (size - 1) / 2);
  OK(MPI_Comm_free(&made));
}

// If one rank cannot serve the others' accesses, no rank gets the window.
static void a_window_that_gets_no_thread(void) {
  int values[2] = {rank, -1};
  MPI_Win window;
  for (int failing = 0; failing < size; ++failing) {
    refused = 0;
    refuses = rank == failing;
    const int code =
        MPI_Win_create(values, sizeof values, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    refuses = 0;
    CHECK(refused == (rank == failing));
    TELLS(code, MPI_ERR_OTHER, "cannot start a thread");
  }
  OK(MPI_Win_create(values, sizeof values, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window));
  OK(MPI_Win_fence(0, window));
  OK(MPI_Put(&rank, 1, MPI_INT, (rank + 1) % size, 1, 1, MPI_INT, window));
  OK(MPI_Win_fence(0, window));
  CHECK(values[1] == (rank + size - 1) % size);
  OK(MPI_Win_free(&window));
}

int main(int argc, char** argv) {
  OK(MPI_Init(&argc, &argv));
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  a_duplicate_that_gets_no_thread();
  // Only ranks of other hosts need the thread.
  if (argc > 1 && strcmp(argv[1], "hosts") == 0) a_window_that_gets_no_thread();
  OK(MPI_Finalize());
  return 0;
}
