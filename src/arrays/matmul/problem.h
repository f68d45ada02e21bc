// A product in a normal form: all matrices are stored along the first axis, whatever order the
// caller uses.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "arrays/matmul/axis.h"
#include "hocket/matmul.h"

namespace hocket::matmul {

// The distribution of a matrix over a grid of ranks. A value.
class Tiling {
 public:
  // Throws InvalidArgument if `spread` does not fit the shape or the number of ranks.
  Tiling(const MatrixSpread& spread, const Extents& whole, int ranks);

  const Axis& axis(std::size_t i) const noexcept { return axes_[i]; }
  bool is_replicated() const noexcept { return ranks_.empty(); }
  // Returns the rank at a place; `me` for a replicated matrix.
  int rank_at(std::size_t first, std::size_t second, int me) const noexcept;
  std::array<std::size_t, 2> place_of(int rank) const noexcept;
  std::size_t held(int rank, std::size_t axis) const noexcept;
  std::size_t held(int rank) const noexcept { return held(rank, 0) * held(rank, 1); }
  // Returns the largest number of elements that any rank has.
  std::size_t most() const noexcept;

  Tiling transposed() const;

 private:
  std::array<Axis, 2> axes_;
  std::vector<int> ranks_;  // by place, the second axis varying fastest; empty: replicated
  std::vector<std::array<std::size_t, 2>> places_;  // by rank
};

// A factor, A or B, after its op: the tiling's axes are those of op(A). It is stored along the
// first axis or, if `is_transposed`, along the second axis. A value.
struct Factor {
  Tiling tiling;
  DType dtype{};
  bool is_transposed = false;
  bool is_conjugated = false;

  Factor transposed() const { return {tiling.transposed(), dtype, !is_transposed, is_conjugated}; }
};

// Arrays begin at multiples of this number of elements if 8-bit factors are multiplied without
// conversion. An element is one byte, so it is also the number of bytes.
inline constexpr std::size_t kFloat8Unit = 16;

inline bool is_float8(DType dtype) noexcept {
  return dtype == DType::kFloat8E4M3 || dtype == DType::kFloat8E5M2;
}

// result = left right, with the result stored along its first axis. If the caller's result is
// stored along the other axis, the whole product is transposed, and `left` is B. A value.
struct Problem {
  std::size_t m = 0, n = 0, k = 0;
  Factor left, right;
  Tiling result;
  bool is_swapped = false;
  DType result_dtype{};

  // The left factor's type. The right factor's elements have the same size.
  DType dtype() const noexcept { return left.dtype; }
  // The type in which products are made and summed.
  DType sum_dtype() const noexcept {
    return size_of(dtype()) < size_of(DType::kFloat32) ? DType::kFloat32 : dtype();
  }
};

// Throws InvalidArgument if the arguments do not fit together.
Problem make_problem(const MatmulSize& size,
                     const MatmulOperand& a,
                     const MatmulOperand& b,
                     const MatmulOperand& d,
                     const MatmulOptions& options,
                     int ranks);

}  // namespace hocket::matmul
