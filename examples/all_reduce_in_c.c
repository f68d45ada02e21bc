// The mean of an array over all ranks, in C.
#include <hocket/c.h>
#include <stdio.h>

static int fail(void) {
  fprintf(stderr, "%s\n", hocket_error_message());
  return 1;
}

int main(void) {
  hocket_comm* world = NULL;
  int rank = 0;
  if (hocket_init(NULL, &world) != HOCKET_OK) return fail();
  if (hocket_comm_rank(world, &rank) != HOCKET_OK) return fail();

  double x[4] = {rank, rank, rank, rank};
  const hocket_array array = {x, 4, HOCKET_FLOAT64, HOCKET_MEMORY_HOST};
  const hocket_call_options options = {.size = sizeof options, .deadline_ns = 10000000000};
  if (hocket_all_reduce(world, NULL, &array, HOCKET_AVG, &options) != HOCKET_OK) return fail();
  if (rank == 0) printf("mean over all ranks: %g %g %g %g\n", x[0], x[1], x[2], x[3]);

  hocket_comm_free(&world);
  return 0;
}
