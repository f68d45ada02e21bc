// Groups: communicators of some of the ranks, here the rows and columns of a grid.
#include <hocket/hocket.h>

#include <cstdio>
#include <vector>

#include "check.h"

using examples::expect_equal;

int main() try {
  hocket::World world = hocket::init();
  hocket::Communicator& comm = world.communicator();
  const int rank = comm.rank();

  // Two columns; with an odd number of ranks the last row is short.
  constexpr int kColumns = 2;
  hocket::Communicator row = comm.split({.color = rank / kColumns, .key = rank});
  hocket::Communicator column = comm.split({.color = rank % kColumns, .key = rank});
  expect_equal(row.rank(), rank % kColumns, "my place in the row");
  expect_equal(column.rank(), rank / kColumns, "my place in the column");

  // Ranks of a row sum over the row only, all rows at once.
  int sum = rank;
  row.all_reduce(hocket::scalar(sum));
  int wanted = 0;
  for (const int member : row.world_ranks()) wanted += member;
  expect_equal(sum, wanted, "the sum over the row");

  // The even ranks. All ranks make the call; the others get a communicator they are no members of.
  std::vector<int> even_ranks;
  for (int r = 0; r < comm.size(); r += 2) even_ranks.push_back(r);
  hocket::Communicator evens = comm.new_group(even_ranks);
  expect_equal(evens.is_member(), rank % 2 == 0, "whether I am among the even ranks");
  if (evens.is_member()) {
    std::vector<int> members(even_ranks.size());
    evens.all_gather(std::vector<int>{rank}, members);
    for (std::size_t i = 0; i < members.size(); ++i) {
      expect_equal(members[i], even_ranks[i], "member " + std::to_string(i));
    }
  }

  // The ranks of this host, and one of each host.
  int on_this_host = 1;
  comm.intra_node().all_reduce(hocket::scalar(on_this_host));
  expect_equal(on_this_host, comm.intra_node().size(), "ranks on this host");

  // Closing is local and cheap; leaving it to the destructor is as good.
  evens.close();
  if (rank == 0) {
    std::printf("a grid of %d rows; %zu even ranks; %d ranks on this host\n",
                column.size(),
                even_ranks.size(),
                on_this_host);
  }
  return 0;
} catch (const std::exception& error) {
  return examples::failed(error);
}
