// Hello: joins the job, says who is there, leaves.
//
//     hocket run -n 4 -- hello
//
// Started alone, the program is a job of one rank.
#include <hocket/hocket.h>

#include <cstdio>

#include "check.h"

int main() try {
  hocket::World world = hocket::init();
  hocket::Communicator& comm = world.communicator();
  std::printf(
      "rank %d of %d, started by %s\n", comm.rank(), comm.size(), world.launch().launcher.c_str());

  // No rank passes before all have come.
  comm.barrier();

  // Everyone's rank, summed, tells whether everyone is there.
  int sum = comm.rank();
  comm.all_reduce(hocket::scalar(sum));
  examples::expect_equal(sum, comm.size() * (comm.size() - 1) / 2, "the sum of the ranks");

  if (comm.rank() == 0) {
    std::printf("all %d are here; engines:", comm.size());
    for (const std::string& engine : world.engines()) std::printf(" %s", engine.c_str());
    std::printf("\n");
  }
  return 0;
} catch (const std::exception& error) {
  return examples::failed(error);
}
