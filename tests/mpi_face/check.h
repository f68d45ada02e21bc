/* Checks of a rank. One that fails ends the rank with status 1 and names the place. */
#pragma once

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, size;

#define CHECK(condition)                                                             \
  do {                                                                               \
    if (!(condition)) {                                                              \
      fprintf(stderr, "rank %d: %s:%d: %s\n", rank, __FILE__, __LINE__, #condition); \
      exit(1);                                                                       \
    }                                                                                \
  } while (0)
#define OK(call) CHECK((call) == MPI_SUCCESS)

static int error_class(int code) {
  int found = -1;
  MPI_Error_class(code, &found);
  return found;
}
#define FAILS(call, expected) CHECK(error_class(call) == (expected))
