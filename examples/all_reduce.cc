// Reductions: every rank brings an array, every rank gets the arrays combined.
#include <hocket/hocket.h>

#include <cstdio>
#include <vector>

#include "check.h"

using examples::expect_equal;

int main() try {
  hocket::World world = hocket::init();
  hocket::Communicator& comm = world.communicator();
  const int n = comm.size();

  // In place, the sum: element i is i * (1 + 2 + ... + n).
  std::vector<float> x(1000);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i) * (comm.rank() + 1);
  comm.all_reduce(x);
  for (std::size_t i = 0; i < x.size(); ++i) {
    expect_equal(
        x[i], static_cast<float>(i) * n * (n + 1) / 2, "sum, element " + std::to_string(i));
  }

  // Into another array, with another operator and a deadline of this call's own.
  const std::vector<int> in{comm.rank(), -comm.rank(), 7};
  std::vector<int> highest(in.size());
  comm.all_reduce(
      in, highest, {.op = hocket::ReduceOp::kMax, .deadline = std::chrono::seconds(60)});
  expect_equal(highest[0], n - 1, "the highest rank");
  expect_equal(highest[1], 0, "the highest negative");
  expect_equal(highest[2], 7, "what all agree in");

  // One number.
  double loss = 1.0 + comm.rank();
  comm.all_reduce(hocket::scalar(loss), {.op = hocket::ReduceOp::kAvg});
  expect_equal(loss, (n + 1) / 2.0, "the mean loss");

  // A call made often: checked once, then only carried out.
  std::vector<double> gradient(64);
  auto sum_gradients = comm.prepare_all_reduce(gradient);
  for (int step = 0; step < 100; ++step) {
    gradient.assign(gradient.size(), step + comm.rank());
    sum_gradients();
    expect_equal(gradient[63], n * step + n * (n - 1) / 2.0, "step " + std::to_string(step));
  }

  if (comm.rank() == 0) std::printf("%d ranks: sum, max, mean and prepared sums agree\n", n);
  return 0;
} catch (const std::exception& error) {
  return examples::failed(error);
}
