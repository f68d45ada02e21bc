// Sparse matrices: every rank has some entries of a large matrix; their sum is on all of them.
#include <hocket/hocket.h>

#include <cstdint>
#include <cstdio>
#include <vector>

#include "check.h"

using examples::expect_equal;

int main() try {
  hocket::World world = hocket::init();
  hocket::Communicator& comm = world.communicator();
  const int rank = comm.rank();

  // A matrix of 1000 x 1000: this rank has its entry of the diagonal, and one that all have.
  constexpr std::size_t kSize = 1000;
  const std::vector<std::int32_t> rows{rank, 999};
  const std::vector<std::int32_t> columns{rank, 0};
  const std::vector<double> values{1.0 + rank, 0.5};
  const auto mine = hocket::coo_view(kSize, kSize, rows, columns, values);

  // Formats, element types and numbers of entries travel along.
  const hocket::SparseMatrix sum = hocket::all_reduce_sparse(comm, mine);
  expect_equal(sum.entries(), static_cast<std::size_t>(comm.size()) + 1, "entries of the sum");
  const auto* added = static_cast<const double*>(sum.view().values.data());
  for (int r = 0; r < comm.size(); ++r) expect_equal(added[r], 1.0 + r, "the diagonal");
  expect_equal(added[comm.size()], 0.5 * comm.size(), "the entry that all have");

  const std::vector<hocket::SparseMatrix> all = hocket::all_gather_sparse(comm, mine);
  expect_equal(all.size(), static_cast<std::size_t>(comm.size()), "matrices");
  if (rank == 0) std::printf("%zu entries of %zu\n", sum.entries(), kSize * kSize);
  return 0;
} catch (const std::exception& error) {
  return examples::failed(error);
}
