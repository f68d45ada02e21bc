// Messages between two ranks: a ring, and reports to rank 0 from any rank that is ready.
#include <hocket/hocket.h>

#include <cstdio>
#include <vector>

#include "check.h"

using examples::expect_equal;

int main() try {
  hocket::World world = hocket::init();
  hocket::Communicator& comm = world.communicator();
  const int rank = comm.rank();
  const int n = comm.size();

  // Around the ring: after n shifts everyone has its own values again.
  const int right = (rank + 1) % n;
  const int left = (rank + n - 1) % n;
  std::vector<int> token{rank, 10 * rank};
  for (int shift = 1; shift <= n; ++shift) {
    std::vector<int> next(token.size());
    comm.send_recv(token, right, next, left);
    token = next;
    const int origin = (rank + n - shift % n) % n;
    expect_equal(token[0], origin, "whose token this is");
    expect_equal(token[1], 10 * origin, "what the token holds");
  }

  // Reports, tagged, received in the order in which they come.
  constexpr int kReport = 5;
  if (rank == 0) {
    std::vector<bool> seen(static_cast<std::size_t>(n));
    for (int i = 1; i < n; ++i) {
      double report = 0;
      const hocket::Received from =
          comm.recv(hocket::scalar(report), hocket::kAnySource, {.tag = kReport});
      expect_equal(report, 0.5 * from.source, "the report of rank " + std::to_string(from.source));
      expect_equal(seen[from.source], false, "whether that rank had reported before");
      seen[from.source] = true;
    }
    std::printf("a ring of %d, and %d reports\n", n, n - 1);
  } else {
    const double report = 0.5 * rank;
    comm.send(std::span(&report, 1), 0, {.tag = kReport});
  }
  return 0;
} catch (const std::exception& error) {
  return examples::failed(error);
}
