// A program of MPI that joins by hocket/mpi.h: first all ranks, in another order, then the even
// ones; and goes on with MPI afterwards. Compiled by each MPI's own wrapper, run by its mpirun.
#include <mpi.h>

#include <cstdio>
#include <vector>

#include "hocket/hocket.h"
#include "hocket/mpi.h"

namespace {

int wrong = 0;
void check(bool condition, const char* what) {
  if (condition) return;
  std::printf("wrong: %s\n", what);
  wrong = 1;
}

void join(MPI_Comm comm) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  hocket::World world = hocket::init_mpi(comm);
  check(world.rank() == rank && world.size() == size, "rank and size are the communicator's");
  std::vector<double> x(1000, rank + 1.0);
  world.communicator().all_reduce(x);
  check(x[999] == size * (size + 1) / 2.0, "all_reduce");
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm turned = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &turned);
  join(turned);
  MPI_Comm half = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  join(half);
  int any = 0;
  MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return any;
}
