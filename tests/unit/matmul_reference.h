// Random products, and their results by plain sums.
#pragma once

#include <algorithm>
#include <array>
#include <complex>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "hocket/matmul.h"

namespace hocket::matmul_reference {

using Complex = std::complex<double>;

// A whole matrix, by rows.
struct Whole {
  std::size_t rows, columns;
  std::vector<Complex> values;
  Complex& at(std::size_t i, std::size_t j) { return values[i * columns + j]; }
};

// Small whole numbers: products are exact in every type, in any order.
inline Whole numbers(std::size_t rows, std::size_t columns, bool is_complex, std::mt19937& random) {
  std::uniform_int_distribution<int> some(-3, 3);
  Whole whole{rows, columns, std::vector<Complex>(rows * columns)};
  for (Complex& value : whole.values) value = Complex(some(random), is_complex ? some(random) : 0);
  return whole;
}

inline Complex op_at(Whole& x, MatrixOp op, std::size_t i, std::size_t j) {
  if (op == MatrixOp::kNone) return x.at(i, j);
  return op == MatrixOp::kTranspose ? x.at(j, i) : std::conj(x.at(j, i));
}

// Returns the index in the whole matrix of a rank's element (i, j), by the definition of the
// distributions.
inline std::array<std::size_t, 2> index_of(const MatrixSpread& spread,
                                           const Extents& whole,
                                           int rank,
                                           int ranks,
                                           std::size_t i,
                                           std::size_t j) {
  if (const auto* slab = std::get_if<Slab>(&spread)) {
    const Box box = slab->box(whole, rank, ranks);
    return {box.lower()[0] + i, box.lower()[1] + j};
  }
  if (const auto* block = std::get_if<BlockNonCyclic>(&spread)) {
    const Box box = block->box(whole, rank);
    return {box.lower()[0] + i, box.lower()[1] + j};
  }
  if (const auto* blocks = std::get_if<BlockCyclic>(&spread)) {
    const Extents at = blocks->global_index(rank, {i, j});
    return {at[0], at[1]};
  }
  return {i, j};
}

template <typename T>
T as(Complex value) {
  if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, Complex>) {
    return T(value);
  } else if constexpr (sizeof(T) == 1) {
    const float largest = std::is_same_v<T, float8_e4m3> ? 448 : 57344;
    return static_cast<T>(std::clamp(static_cast<float>(value.real()), -largest, largest));
  } else {
    return static_cast<T>(static_cast<float>(value.real()));
  }
}

template <typename T>
std::vector<T> part_of(Whole& whole, const MatmulOperand& operand, int rank, int ranks) {
  const Extents all{whole.rows, whole.columns};
  const Extents shape = local_shape(operand.spread, all, rank, ranks);
  std::vector<T> part(count_of(shape));
  for (std::size_t i = 0; i < shape[0]; ++i) {
    for (std::size_t j = 0; j < shape[1]; ++j) {
      const auto at = index_of(operand.spread, all, rank, ranks, i, j);
      const std::size_t place =
          operand.order == MemoryOrder::kFortran ? i + j * shape[0] : i * shape[1] + j;
      part[place] = as<T>(whole.at(at[0], at[1]));
    }
  }
  return part;
}

// One of the ways to spread a matrix that programs have, drawn alike on all ranks.
inline MatrixSpread draw(std::mt19937& random, int ranks, bool is_result) {
  const auto n = static_cast<std::size_t>(ranks);
  const auto below = [&](std::size_t most) {
    return std::uniform_int_distribution<std::size_t>(0, most - 1)(random);
  };
  std::vector<Extents> grids;
  for (std::size_t p = 1; p <= n; ++p) {
    if (n % p == 0) grids.push_back({p, n / p});
  }
  const Extents shape = grids[below(grids.size())];
  const ProcessGrid grid(
      shape, below(2) == 0 ? ProcessGrid::Layout::kRowMajor : ProcessGrid::Layout::kColumnMajor);
  switch (below(is_result ? 8 : 7)) {
    case 0:
      return Slab{0};
    case 1:
      return Slab{1};
    case 2:
      return BlockNonCyclic{grid};
    case 6:
    case 7:
      return Replicated{};
    default:
      return BlockCyclic(grid, {1 + below(5), 1 + below(5)}, {below(shape[0]), below(shape[1])});
  }
}

// T: of the factors; R: of C and D. The same on all ranks, but for the parts.
template <typename T, typename R>
struct Drawn {
  Drawn(int rank, int ranks, std::mt19937& random) {
    const auto below = [&](std::size_t most) {
      return std::uniform_int_distribution<std::size_t>(0, most - 1)(random);
    };
    const bool is_complex = std::is_same_v<T, std::complex<float>> || std::is_same_v<T, Complex>;
    size = {below(40), below(40), below(40)};
    const auto operand = [&](bool is_result) {
      return MatmulOperand{.spread = draw(random, ranks, is_result),
                           .op = is_result ? MatrixOp::kNone : static_cast<MatrixOp>(below(3)),
                           .order = below(2) == 0 ? MemoryOrder::kC : MemoryOrder::kFortran};
    };
    a = operand(false);
    b = operand(false);
    d = operand(true);
    const auto whole = [&](const MatmulOperand& x, std::size_t rows, std::size_t columns) {
      if (x.op != MatrixOp::kNone) std::swap(rows, columns);
      return numbers(rows, columns, is_complex, random);
    };
    Whole wa = whole(a, size.m, size.k), wb = whole(b, size.k, size.n);
    Whole wc = numbers(size.m, size.n, is_complex, random);
    scale = {.alpha = Complex(2, is_complex ? 1 : 0),
             .beta = Complex(below(2) == 0 ? 0 : -1, is_complex ? 2 : 0)};
    Whole want{size.m, size.n, std::vector<Complex>(size.m * size.n)};
    for (std::size_t i = 0; i < size.m; ++i) {
      for (std::size_t j = 0; j < size.n; ++j) {
        Complex sum = 0;
        for (std::size_t k = 0; k < size.k; ++k) {
          sum += op_at(wa, a.op, i, k) * op_at(wb, b.op, k, j);
        }
        const Complex alpha(scale.alpha.real, scale.alpha.imag);
        const Complex beta(scale.beta.real, scale.beta.imag);
        want.at(i, j) = alpha * sum + beta * wc.at(i, j);
      }
    }
    my_a = part_of<T>(wa, a, rank, ranks);
    my_b = part_of<T>(wb, b, rank, ranks);
    my_c = part_of<R>(wc, d, rank, ranks);
    wanted = part_of<R>(want, d, rank, ranks);
  }

  std::string text() const {
    std::string all;
    for (const auto& [name, value] : {std::pair{"m ", size.m},
                                      {" n ", size.n},
                                      {" k ", size.k},
                                      {" a ", a.spread.index()},
                                      {" b ", b.spread.index()},
                                      {" d ", d.spread.index()}}) {
      all += name + std::to_string(value);
    }
    return all;
  }

  MatmulSize size;
  MatmulOperand a, b, d;
  MatmulScale scale;
  std::vector<T> my_a, my_b;  // this rank's parts
  std::vector<R> my_c, wanted;
};

}  // namespace hocket::matmul_reference
