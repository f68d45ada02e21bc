// Partial results of every op, averages too: sums of integers do not overflow on their way to one.
#pragma once

#include <cstddef>

#include "foundation/core/reduce.h"

namespace hocket::core {

// The type reductions of `dtype` by `op` add in: as for sums, but averages of integers are added in
// int64, and those of 64 bits in complex128, whose parts hold the sums of the high and the low 32
// bits: exact for 2^21 arrays, and in any order.
constexpr DType accumulation_type(DType dtype, ReduceOp op) noexcept {
  if (op != ReduceOp::kAvg || !is_defined(ReduceOp::kBitAnd, dtype))
    return accumulation_type(dtype);
  return size_of(dtype) == 8 ? DType::kComplex128 : DType::kInt64;
}

// Converts `count` elements of `from` into that type. `narrow` brings them back.
void widen(void* out, const void* in, std::size_t count, DType from, ReduceOp op);

}  // namespace hocket::core
