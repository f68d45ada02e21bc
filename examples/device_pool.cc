// A pool of workers in each process: work in parallel, reduce among the workers, and among the
// processes with one array of each crossing.
#include <hocket/hocket.h>

#include <cstdio>
#include <vector>

#include "check.h"

using examples::expect_equal;

int main() try {
  hocket::World world = hocket::init();
  hocket::Communicator& comm = world.communicator();

  // Three workers of the host; {.devices = {0, 1}} makes workers of GPUs.
  hocket::DevicePool pool(3);

  // Each worker fills an array of its own. All rows count from 0 over all processes.
  std::vector<std::vector<double>> rows(3, std::vector<double>(1000));
  pool.map([&](hocket::PoolWorker& worker) {
    const int row = comm.rank() * worker.size() + worker.index();
    rows[static_cast<std::size_t>(worker.index())].assign(1000, row);
  });

  // In place: every row becomes the sum of all rows of all processes.
  const std::vector<hocket::ArrayView> views(rows.begin(), rows.end());
  pool.all_reduce(views, {.across = &comm});
  const int n = 3 * comm.size();
  expect_equal(rows[2][999], n * (n - 1) / 2.0, "the sum of all rows");

  // Workers talk to each other as ranks do.
  std::vector<int> neighbours(3);
  pool.map([&](hocket::PoolWorker& worker) {
    int right = (worker.index() + 1) % worker.size();
    const int left = (worker.index() + worker.size() - 1) % worker.size();
    int& found = neighbours[static_cast<std::size_t>(worker.index())];
    worker.communicator().send_recv(hocket::scalar(right), right, hocket::scalar(found), left);
  });
  for (int i = 0; i < 3; ++i) {
    expect_equal(neighbours[static_cast<std::size_t>(i)], i, "what the left neighbour sent");
  }

  // A picture cut into three strips, which overlap by two rows at each seam: the strips blend
  // there.
  std::vector<std::vector<float>> strips{
      {0, 0, 0, 0, 0, 0, 0, 0, 0}, {3, 3, 3, 3, 3, 3, 3, 3, 3}, {6, 6, 6, 6, 6, 6, 6, 6, 6}};
  const std::vector<hocket::ArrayView> pictures(strips.begin(), strips.end());
  const std::vector<std::size_t> seams{3, 6};
  pool.exchange_halo(pictures, {.rows = 9}, seams, 2, {.mode = hocket::HaloOptions::Mode::kBlend});
  expect_equal(strips[0][3], 1.0f, "the seam's first row");
  expect_equal(strips[1][4], 2.0f, "the seam's second row");

  // Loading ahead: the next chunk is loaded while one is used.
  std::vector<std::vector<int>> buffers(2);
  int total = 0;
  hocket::stream_chunks(
      100,
      {.chunk = 8, .buffers = buffers.size()},
      [&](std::size_t buffer, std::size_t first, std::size_t last) {
        buffers[buffer].assign(last - first, static_cast<int>(first));
      },
      [&](std::size_t buffer, std::size_t, std::size_t) {
        for (const int x : buffers[buffer]) total += x;
      });
  expect_equal(total, 4608, "the sum over all chunks");

  if (comm.rank() == 0) std::printf("%d workers in all; every row is %g\n", n, rows[0][0]);
  return 0;
} catch (const std::exception& error) {
  return examples::failed(error);
}
