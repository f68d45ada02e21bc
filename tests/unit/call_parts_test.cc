// Parts of one array: what goes out and what comes in may begin at one address, and be no exchange
// in place.
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "hocket/group.h"

namespace hocket {
namespace {

using Counts = std::vector<std::size_t>;

TEST(PartsOfOneArray, NothingGoesOutAndSomethingComesIn) {
  run_threads(2, [](Communicator& comm) {
    const int rank = comm.rank();
    for (int giver = 0; giver < 2; ++giver) {
      std::vector<int> x(9, 10 + rank);
      Counts sent(2), received(2);
      (rank == giver ? sent : received)[static_cast<std::size_t>(1 - rank)] = 9;
      const ArrayView all(x);
      comm.all_to_all_v(rank == giver ? all : all.slice(0, 0),
                        {.counts = sent},
                        rank == giver ? all.slice(0, 0) : all,
                        {.counts = received});
      EXPECT_EQ(x, std::vector<int>(9, 10 + giver));
    }
  });
}

TEST(PartsOfOneArray, PartsLieApartInIt) {
  run_threads(3, [](Communicator& comm) {
    const int rank = comm.rank();
    std::vector<int> x(18);
    std::iota(x.begin(), x.end(), 100 * rank);
    const Counts counts{3, 3, 3}, out_of{9, 12, 15}, into{0, 3, 6};
    const ArrayView all(x);
    comm.all_to_all_v(all,
                      {.counts = counts, .displacements = out_of},
                      all,
                      {.counts = counts, .displacements = into});
    for (int i = 0; i < 9; ++i) {
      EXPECT_EQ(x[static_cast<std::size_t>(i)], 100 * (i / 3) + 9 + 3 * rank + i % 3);
      EXPECT_EQ(x[static_cast<std::size_t>(9 + i)], 100 * rank + 9 + i);
    }
  });
}

}  // namespace
}  // namespace hocket
