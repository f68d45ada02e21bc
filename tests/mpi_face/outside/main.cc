// A program of MPI in C++, which is built outside of hocket's tree.
#include <mpi.h>

#include <cstdio>
#include <numeric>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<double> own(3), all(3 * static_cast<std::size_t>(size)), expected(all.size());
  std::iota(own.begin(), own.end(), 3.0 * rank);
  std::iota(expected.begin(), expected.end(), 0.0);
  MPI_Allgather(own.data(), 3, MPI_DOUBLE, all.data(), 3, MPI_DOUBLE, MPI_COMM_WORLD);
  if (all == expected) std::printf("rank %d of %d: right in C++\n", rank, size);
  MPI_Finalize();
}
