// Partial results of every op, including averages. Their sums of integers do not overflow.
#pragma once

#include <cstddef>

#include "foundation/core/reduce.h"

namespace hocket::core {

// Returns the type in which reductions of `dtype` by `op` accumulate. It is that of sums, except
// for averages of integers. These use int64. Averages of 64-bit integers use complex128, whose
// parts hold the sums of the high and the low 32 bits. That is exact for 2^21 arrays, in any order.
constexpr DType accumulation_type(DType dtype, ReduceOp op) noexcept {
  if (op != ReduceOp::kAvg || !is_defined(ReduceOp::kBitAnd, dtype))
    return accumulation_type(dtype);
  return size_of(dtype) == 8 ? DType::kComplex128 : DType::kInt64;
}

// Converts `count` elements of `from` into that type. `narrow` is the inverse.
void widen(void* out, const void* in, std::size_t count, DType from, ReduceOp op);

}  // namespace hocket::core
