// A program of MPI in C, which is built outside of hocket's tree.
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  int rank, size, got = -1, sum = 0;
  MPI_Status status;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int right = (rank + 1) % size, left = (rank + size - 1) % size, own = rank * 7 + 1;
  MPI_Sendrecv(&own, 1, MPI_INT, right, 3, &got, 1, MPI_INT, left, 3, MPI_COMM_WORLD, &status);
  MPI_Allreduce(&got, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  const int right_sum = 7 * size * (size - 1) / 2 + size;
  if (got == left * 7 + 1 && status.MPI_SOURCE == left && sum == right_sum) {
    printf("rank %d of %d: right in C\n", rank, size);
  }
  return MPI_Finalize();
}
