// Parts of one array. The sent and the received part may begin at the same address without being an
// exchange in place.
#include <gtest/gtest.h>

#include <numeric>
#include <string>
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

// Overlapping outputs would depend on which comes last.
TEST(PartsOfOneArray, WhatComesInHasAPlaceOfItsOwn) {
  run_threads(3, [](Communicator& comm) {
    const std::vector<int> in(6, 1 + comm.rank());
    std::vector<int> out(9, 7);
    const Counts counts{2, 2, 2}, overlapping{4, 0, 5};
    const std::string wrong = "the parts of ranks 0 and 2 overlap in out";
    const auto refused = [&](const auto& call) {
      try {
        call();
        ADD_FAILURE() << "it was not refused";
      } catch (const InvalidArgument& error) {
        EXPECT_NE(std::string(error.what()).find(wrong), std::string::npos) << error.what();
      }
    };
    const Parts into{.counts = counts, .displacements = overlapping};
    const ArrayView all(out);
    refused([&] { comm.all_to_all_v(in, {.counts = counts}, all, into); });
    refused([&] { comm.all_gather_v(std::span(in).first(2), all, into); });
    refused([&] { comm.gather_v(std::span(in).first(2), all, into, {.root = 1}); });
    EXPECT_EQ(out, std::vector<int>(9, 7));

    // Inputs may overlap, and empty parts may lie anywhere.
    const Counts no_matter{3, 4, 5}, same{0, 0, 0}, from_one{6, 0, 0};
    comm.all_to_all_v(
        in, {.counts = counts, .displacements = same}, all.slice(0, 6), {.counts = counts});
    EXPECT_EQ(out, (std::vector<int>{1, 1, 2, 2, 3, 3, 7, 7, 7}));
    const Parts none_but_one{.counts = from_one, .displacements = no_matter};
    comm.all_gather_v(
        comm.rank() == 0 ? ConstArrayView(in) : ConstArrayView(in).slice(0, 0), all, none_but_one);
    EXPECT_EQ(out, (std::vector<int>{1, 1, 2, 1, 1, 1, 1, 1, 1}));
  });
}

}  // namespace
}  // namespace hocket
