#include "arrays/matmul/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "foundation/base/enumerator.h"
#include "hocket/error.h"

namespace hocket {
namespace matmul {
namespace {

void require_grid(const ProcessGrid& grid, int ranks) {
  if (grid.shape().size() != 2) {
    throw InvalidArgument(
        fmt::format("the grid has {} axes, expected 2 for a matrix", grid.shape().size()));
  }
  if (grid.size() != ranks) {
    throw InvalidArgument(
        fmt::format("the grid has {} places, and there are {} ranks", grid.size(), ranks));
  }
}

bool is_stored_by_rows(MemoryOrder order) { return order != MemoryOrder::kFortran; }

Extents flipped(std::size_t rows, std::size_t columns, MatrixOp op) {
  return op == MatrixOp::kNone ? Extents{rows, columns} : Extents{columns, rows};
}

Factor make_factor(
    const MatmulOperand& given, DType dtype, std::size_t rows, std::size_t columns, int ranks) {
  Tiling tiling(given.spread, flipped(rows, columns, given.op), ranks);
  if (given.op != MatrixOp::kNone) tiling = tiling.transposed();
  return {std::move(tiling),
          dtype,
          (given.op == MatrixOp::kNone) == is_stored_by_rows(given.order),
          given.op == MatrixOp::kConjugateTranspose};
}

void require_enumerators(const MatmulOperand& given, std::string_view name) {
  base::require_enumerator(
      given.op, MatrixOp::kConjugateTranspose, fmt::format("op of {}", name), "MatrixOp");
  base::require_enumerator(
      given.order, MemoryOrder::kFortran, fmt::format("order of {}", name), "MemoryOrder");
}

bool is_half(DType dtype) { return dtype == DType::kFloat16 || dtype == DType::kBFloat16; }

void require_dtypes(DType dtype, DType dtype_b, DType result) {
  const bool is_narrow = is_half(dtype) || is_float8(dtype);
  if (!is_narrow && dtype != DType::kFloat32 && dtype != DType::kFloat64 &&
      dtype != DType::kComplex64 && dtype != DType::kComplex128) {
    throw InvalidArgument(
        fmt::format("dtype is {}, expected float8_e4m3, float8_e5m2, float16, bfloat16, float32, "
                    "float64, complex64 or complex128",
                    name_of(dtype)));
  }
  if (dtype_b != dtype && !(is_float8(dtype) && is_float8(dtype_b))) {
    throw InvalidArgument(
        fmt::format("B is {}, expected {}, as A is: only float8_e4m3 and float8_e5m2 go together",
                    name_of(dtype_b),
                    name_of(dtype)));
  }
  if (result == dtype || (is_narrow && result == DType::kFloat32)) return;
  if (is_float8(dtype)) {
    if (is_half(result) || is_float8(result)) return;
    throw InvalidArgument(
        fmt::format("D is {}, expected float8_e4m3, float8_e5m2, float16, bfloat16 or float32 of "
                    "factors that are {}",
                    name_of(result),
                    name_of(dtype)));
  }
  throw InvalidArgument(fmt::format("D is {}, expected {}{} of factors that are {}",
                                    name_of(result),
                                    name_of(dtype),
                                    is_narrow ? " or float32" : "",
                                    name_of(dtype)));
}

}  // namespace

Tiling::Tiling(const MatrixSpread& spread, const Extents& whole, int ranks) {
  const auto count = static_cast<std::size_t>(ranks);
  if (whole.size() != 2) {
    throw InvalidArgument(fmt::format("a matrix has 2 axes, and this shape {}", whole.size()));
  }
  if (std::holds_alternative<Replicated>(spread)) {
    axes_ = {whole_axis(whole[0]), whole_axis(whole[1])};
    return;
  }
  if (const auto* slab = std::get_if<Slab>(&spread)) {
    if (slab->axis > 1) {
      throw InvalidArgument(
          fmt::format("the slabs' axis is {}, expected 0 for rows or 1 for columns", slab->axis));
    }
    axes_[slab->axis] = slab_axis(whole[slab->axis], count);
    axes_[1 - slab->axis] = whole_axis(whole[1 - slab->axis]);
    for (std::size_t r = 0; r < count; ++r) {
      ranks_.push_back(static_cast<int>(r));
      places_.push_back(slab->axis == 0 ? std::array{r, std::size_t{0}}
                                        : std::array{std::size_t{0}, r});
    }
    return;
  }
  const auto* block = std::get_if<BlockNonCyclic>(&spread);
  require_grid(block != nullptr ? block->grid : std::get<BlockCyclic>(spread).grid(), ranks);
  const BlockCyclic blocks = block != nullptr ? block->bound(whole) : std::get<BlockCyclic>(spread);
  const Extents& shape = blocks.grid().shape();
  const Extents first = blocks.grid().place_of(blocks.owner({0, 0}));
  for (std::size_t i = 0; i < 2; ++i) {
    axes_[i] = dealt_axis(whole[i], blocks.block()[i], shape[i], first[i]);
  }
  places_.resize(count);
  for (std::size_t i = 0; i < shape[0]; ++i) {
    for (std::size_t j = 0; j < shape[1]; ++j) {
      ranks_.push_back(blocks.grid().rank_at({i, j}));
      places_[static_cast<std::size_t>(ranks_.back())] = {i, j};
    }
  }
}

int Tiling::rank_at(std::size_t first, std::size_t second, int me) const noexcept {
  return is_replicated() ? me : ranks_[first * axes_[1].places() + second];
}

std::array<std::size_t, 2> Tiling::place_of(int rank) const noexcept {
  return is_replicated() ? std::array<std::size_t, 2>{} : places_[static_cast<std::size_t>(rank)];
}

std::size_t Tiling::held(int rank, std::size_t axis) const noexcept {
  return axes_[axis].held[place_of(rank)[axis]];
}

std::size_t Tiling::most() const noexcept {
  const auto largest = [](const Axis& axis) {
    return *std::max_element(axis.held.begin(), axis.held.end());
  };
  return largest(axes_[0]) * largest(axes_[1]);
}

Tiling Tiling::transposed() const {
  Tiling other = *this;
  std::swap(other.axes_[0], other.axes_[1]);
  if (is_replicated()) return other;
  for (auto& place : other.places_) std::swap(place[0], place[1]);
  for (std::size_t r = 0; r < places_.size(); ++r) {
    const auto& place = other.places_[r];
    other.ranks_[place[0] * other.axes_[1].places() + place[1]] = static_cast<int>(r);
  }
  return other;
}

Problem make_problem(const MatmulSize& size,
                     const MatmulOperand& a,
                     const MatmulOperand& b,
                     const MatmulOperand& d,
                     const MatmulOptions& options,
                     int ranks) {
  constexpr auto kMost = static_cast<std::size_t>(std::numeric_limits<int>::max());
  if (std::max({size.m, size.n, size.k}) > kMost) {
    throw InvalidArgument(fmt::format(
        "m, n and k are {}, {} and {}, expected at most {}", size.m, size.n, size.k, kMost));
  }
  require_enumerators(a, "A");
  require_enumerators(b, "B");
  require_enumerators(d, "D");
  base::require_enumerator(options.form, MatmulForm::kReduced, "form", "MatmulForm");
  if (d.op != MatrixOp::kNone) {
    throw InvalidArgument("D has an op, and only A and B may; give D the other memory order");
  }
  const DType dtype = options.dtype, dtype_b = options.dtype_b.value_or(dtype),
              result = options.result.value_or(dtype);
  require_dtypes(dtype, dtype_b, result);
  Problem problem{.m = size.m,
                  .n = size.n,
                  .k = size.k,
                  .left = make_factor(a, dtype, size.m, size.k, ranks),
                  .right = make_factor(b, dtype_b, size.k, size.n, ranks),
                  .result = Tiling(d.spread, {size.m, size.n}, ranks),
                  .result_dtype = result};
  if (!is_stored_by_rows(d.order)) return problem;
  std::swap(problem.m, problem.n);
  std::swap(problem.left, problem.right);
  problem.left = problem.left.transposed();
  problem.right = problem.right.transposed();
  problem.result = problem.result.transposed();
  problem.is_swapped = true;
  return problem;
}

}  // namespace matmul

Extents local_shape(const MatrixSpread& spread, const Extents& whole, int rank, int ranks) {
  if (rank < 0 || rank >= ranks) {
    throw InvalidArgument(fmt::format("rank is {}, expected 0 to {}", rank, ranks - 1));
  }
  const matmul::Tiling tiling(spread, whole, ranks);
  return {tiling.held(rank, 0), tiling.held(rank, 1)};
}

}  // namespace hocket
