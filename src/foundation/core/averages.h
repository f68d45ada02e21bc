// Types of partial results, for every op. Averages of integers need a wider type, so that their
// sums do not overflow.
#pragma once

#include <cstddef>

#include "foundation/core/reduce.h"

namespace hocket::core {

// Returns the type in which reductions of `dtype` by `op` accumulate:
// - averages of integers up to 32 bits: int64;
// - averages of 64-bit integers: complex128, whose real part is the sum of the high 32 bits, and
//   whose imaginary part is the sum of the low 32 bits. This is exact for up to 2^21 arrays;
// - all others: the type in which sums accumulate.
constexpr DType accumulation_type(DType dtype, ReduceOp op) noexcept {
  if (op != ReduceOp::kAvg || !is_defined(ReduceOp::kBitAnd, dtype))
    return accumulation_type(dtype);
  return size_of(dtype) == 8 ? DType::kComplex128 : DType::kInt64;
}

// Converts `count` elements of type `from` to the type `accumulation_type(from, op)`. `narrow` in
// reduce.h converts them back.
void widen(void* out, const void* in, std::size_t count, DType from, ReduceOp op);

}  // namespace hocket::core
