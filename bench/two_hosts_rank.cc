// One rank of bench/two_hosts.py: all_reduce by hocket, when a line of this rank's pipe says so.
#include <hocket/hocket.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <numeric>
#include <string>
#include <vector>

int main(int, char** argv) {
  const auto world = hocket::init();
  auto& comm = world.communicator();
  const std::string folder = argv[1];
  std::ifstream commands(folder + "/hocket." + std::to_string(comm.rank()));
  std::ofstream answers;
  if (comm.rank() == 0) answers.open(folder + "/hocket.answers");
  long bytes = 0;
  long calls = 0;
  while (commands >> bytes >> calls) {
    const std::vector<float> in(static_cast<std::size_t>(bytes) / sizeof(float), 1);
    std::vector<float> out(in.size());
    std::vector<double> times;
    for (long i = -3; i < calls; ++i) {
      comm.barrier();
      const auto begin = std::chrono::steady_clock::now();
      comm.all_reduce(in, out);
      const std::chrono::duration<double, std::micro> took =
          std::chrono::steady_clock::now() - begin;
      if (i >= 0) times.push_back(took.count());
    }
    // Takes the mean of the middle half. The rank that leaves the barrier first may change from
    // call to call, so the median alone could be of either kind.
    std::sort(times.begin(), times.end());
    const auto quarter = static_cast<std::ptrdiff_t>(times.size() / 4);
    const auto middle = static_cast<double>(times.size()) - 2.0 * static_cast<double>(quarter);
    const double sum = std::accumulate(times.begin() + quarter, times.end() - quarter, 0.0);
    if (comm.rank() == 0) answers << sum / middle << std::endl;
  }
}
