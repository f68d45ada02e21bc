// Redistributes a matrix from rows to columns, and shows the context in which libraries find the
// communicator.
#include <hocket/hocket.h>

#include <cstdio>
#include <vector>

#include "check.h"

using examples::expect_equal;

int main() try {
  // Whoever brings a process group of his own gives it to `initialize`.
  const auto context = hocket::Context::initialize({.deadline = std::chrono::seconds(30)});
  hocket::Communicator& comm = hocket::Context::current()->communicator();

  // Element (i, j) of the matrix is 100 i + j.
  const hocket::Extents shape{10, 7};
  const hocket::Box rows = hocket::Slab{0}.box(shape, comm.rank(), comm.size());
  const hocket::Box columns = hocket::Slab{1}.box(shape, comm.rank(), comm.size());
  std::vector<int> mine;
  for (std::size_t i = rows.lower()[0]; i < rows.upper()[0]; ++i) {
    for (int j = 0; j < 7; ++j) mine.push_back(static_cast<int>(100 * i) + j);
  }

  // Checked and planned once, done as often as wanted.
  hocket::Redistribution to_columns(comm, rows, columns);
  std::vector<int> wanted(columns.count());
  to_columns(mine, wanted);
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    const std::size_t width = columns.shape()[1];
    const std::size_t i = k / width, j = columns.lower()[1] + k % width;
    expect_equal(wanted[k], static_cast<int>(100 * i + j), "an element of my columns");
  }

  // Blocks of 2 x 2, dealt out over a grid of ranks, as ScaLAPACK has them.
  const hocket::BlockCyclic blocks(hocket::ProcessGrid({1, static_cast<std::size_t>(comm.size())}),
                                   {2, 2});
  std::size_t elements = hocket::count_of(blocks.shape(shape, comm.rank()));
  comm.all_reduce(hocket::scalar(elements));
  expect_equal(elements, hocket::count_of(shape), "the elements of all ranks' blocks");

  if (comm.rank() == 0) std::printf("rows to columns over %d ranks\n", comm.size());
  hocket::Context::finalize();
  return 0;
} catch (const std::exception& error) {
  return examples::failed(error);
}
