// One rank of bench/two_hosts.py's other side: all_reduce by MPI, when a line of this rank's pipe
// says so. Between lines it sleeps.
#include <mpi.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const std::string folder = argv[1];
  std::ifstream commands(folder + "/mpi." + std::to_string(rank));
  std::ofstream answers;
  if (rank == 0) answers.open(folder + "/mpi.answers");
  long bytes = 0;
  long calls = 0;
  while (commands >> bytes >> calls) {
    const auto count = static_cast<std::size_t>(bytes) / sizeof(float);
    const std::vector<float> in(count, 1);
    std::vector<float> out(count);
    std::vector<double> times;
    for (long i = -3; i < calls; ++i) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double begin = MPI_Wtime();
      MPI_Allreduce(
          in.data(), out.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      if (i >= 0) times.push_back(MPI_Wtime() - begin);
    }
    // Takes the mean of the middle half. The rank that leaves the barrier first may change from
    // call to call, so the median alone could be of either kind.
    std::sort(times.begin(), times.end());
    const auto quarter = static_cast<std::ptrdiff_t>(times.size() / 4);
    const auto middle = static_cast<double>(times.size()) - 2.0 * static_cast<double>(quarter);
    const double sum = std::accumulate(times.begin() + quarter, times.end() - quarter, 0.0);
    if (rank == 0) answers << sum / middle * 1e6 << std::endl;
  }
  MPI_Finalize();
}
