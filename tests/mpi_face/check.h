/* Checks of a rank. One that fails ends the rank with status 1 and names the place. */
#pragma once

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size;

#define CHECK(condition)                                                             \
  do {                                                                               \
    if (!(condition)) {                                                              \
      fprintf(stderr, "rank %d: %s:%d: %s\n", rank, __FILE__, __LINE__, #condition); \
      exit(1);                                                                       \
    }                                                                                \
  } while (0)

static inline int is_success(int code) {
  if (code == MPI_SUCCESS) return 1;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  fprintf(stderr, "rank %d: %s\n", rank, text);
  return 0;
}
#define OK(call) CHECK(is_success(call))

static inline int error_class(int code) {
  int found = -1;
  MPI_Error_class(code, &found);
  return found;
}
// The error is of this class, and its text has `told` in it.
static inline int is_told(int code, int expected, const char* told) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  if (error_class(code) == expected && strstr(text, told) != NULL) return 1;
  fprintf(stderr, "rank %d: expected class %d and \"%s\": %s\n", rank, expected, told, text);
  return 0;
}
#define TELLS(call, expected, told) CHECK(is_told(call, expected, told))
#define FAILS(call, expected) CHECK(error_class(call) == (expected))

// A barrier of `ranks` ranks after which rank `last` may die: it returns there only when the others
// have left the barrier, which would otherwise fail with its death.
static inline void pass_before(int last, int ranks, MPI_Comm comm) {
  OK(MPI_Barrier(comm));
  if (rank != last) {
    OK(MPI_Send(NULL, 0, MPI_INT, last, 0, comm));
    return;
  }
  for (int other = 0; other < ranks; ++other) {
    if (other != last) OK(MPI_Recv(NULL, 0, MPI_INT, other, 0, comm, MPI_STATUS_IGNORE));
  }
}
