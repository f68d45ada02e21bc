// The largest eigenvalue of a matrix in blocks that are dealt out to the ranks, by power iteration:
// a block of vectors is multiplied again and again. Checked against the eigenvalue that is known.
#include <hocket/hocket.h>

#include <cmath>
#include <cstdio>
#include <numbers>
#include <vector>

#include "check.h"

int main() try {
  hocket::World world = hocket::init({.deadline = std::chrono::seconds(30)});
  hocket::Communicator& comm = world.communicator();
  const auto ranks = static_cast<std::size_t>(comm.size());

  // A grid of two rows, where the ranks make one.
  const std::size_t high = ranks % 2 == 0 ? 2 : 1;
  const hocket::BlockCyclic blocks(hocket::ProcessGrid({high, ranks / high}), {16, 16});
  const std::size_t n = 120, vectors = 4;

  // Springs in a row: 2 along the diagonal, and -1 beside it.
  const hocket::Extents here = blocks.shape({n, n}, comm.rank());
  std::vector<double> matrix;
  for (std::size_t i = 0; i < here[0]; ++i) {
    for (std::size_t j = 0; j < here[1]; ++j) {
      const hocket::Extents at = blocks.global_index(comm.rank(), {i, j});
      const std::size_t apart = at[0] > at[1] ? at[0] - at[1] : at[1] - at[0];
      matrix.push_back(apart == 0 ? 2 : apart == 1 ? -1 : 0);
    }
  }
  hocket::MatmulOperand spread{.spread = blocks}, all{.spread = hocket::Replicated{}};

  // A^2, A^4, A^8, ...: each squaring doubles the number of steps. The matrix is scaled, as it
  // grows.
  hocket::Matmul square(comm, {.m = n, .n = n, .k = n}, spread, spread, spread);
  hocket::Matmul apply(comm, {.m = n, .n = vectors, .k = n}, spread, all, all);
  std::vector<double> power = matrix, next(power.size());
  for (int doubling = 0; doubling < 16; ++doubling) {
    square(power, power, next);
    double largest = 0;
    for (const double value : next) largest = std::max(largest, std::abs(value));
    comm.all_reduce(hocket::scalar(largest), {.op = hocket::ReduceOp::kMax});
    for (std::size_t i = 0; i < next.size(); ++i) power[i] = next[i] / largest;
  }

  std::vector<double> start(n * vectors), vector(start.size()), image(start.size());
  for (std::size_t i = 0; i < start.size(); ++i) {
    start[i] = std::cos(static_cast<double>(i * i % 97));
  }
  apply(power, start, vector);
  apply(matrix, vector, image);

  // Along each vector the image is the vector, times the eigenvalue.
  const double known = 2 - 2 * std::cos(std::numbers::pi * n / (n + 1.0));
  double worst = 0;
  for (std::size_t j = 0; j < vectors; ++j) {
    double along = 0, square_length = 0;
    for (std::size_t i = 0; i < n; ++i) {
      along += image[i * vectors + j] * vector[i * vectors + j];
      square_length += vector[i * vectors + j] * vector[i * vectors + j];
    }
    worst = std::max(worst, std::abs(along / square_length - known));
  }
  examples::expect_equal(worst < 1e-9, true, "the largest eigenvalue");
  if (comm.rank() == 0) {
    std::printf("%zu x %zu over %d ranks, by %s: largest eigenvalue %.9f, off by %.0e\n",
                n,
                n,
                comm.size(),
                square.library().c_str(),
                known,
                worst);
  }
  return 0;
} catch (const std::exception& error) {
  return examples::failed(error);
}
