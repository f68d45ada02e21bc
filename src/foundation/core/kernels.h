// What the vectorised files offer to reduce.cc, and to those who copy many runs past the caches.
// Each function picks the code for this processor.
#pragma once

#include <complex>
#include <cstddef>

#include "foundation/core/reduce.h"

namespace hocket::core {

// The kernel of element type T; null where there is no vectorised one.
// Specialised for bool, the floats and complex numbers in kernels_*.cc.
template <typename T>
ReduceKernel vector_kernel(ReduceOp op, Stores stores);
// For unsigned T, whose code serves the signed integer of that width too: sum, product, bits.
template <typename T>
ReduceKernel wrapping_kernel(ReduceOp op, Stores stores);
// For every integer T: min and max.
template <typename T>
ReduceKernel extremes_kernel(ReduceOp op, Stores stores);

// float32 from the small floats and back. Narrowing divides by `divisor` first.
template <typename T>
void widen_small(void* out, const void* in, std::size_t count);
template <typename T>
void narrow_small(void* out, const void* in, std::size_t count, float divisor);

// Copies what stands in the first of `outs` to the others.
void copy_to_others(void* const* outs, int n_outs, std::size_t bytes);

// Copies past the caches, without the fence.
void stream(void* out, const void* in, std::size_t bytes);
// Orders what `stream` wrote before all later stores.
void stream_fence();

template <>
ReduceKernel vector_kernel<bool>(ReduceOp op, Stores stores);
template <>
ReduceKernel vector_kernel<float16>(ReduceOp op, Stores stores);
template <>
ReduceKernel vector_kernel<bfloat16>(ReduceOp op, Stores stores);
template <>
ReduceKernel vector_kernel<float>(ReduceOp op, Stores stores);
template <>
ReduceKernel vector_kernel<double>(ReduceOp op, Stores stores);
template <>
ReduceKernel vector_kernel<std::complex<float>>(ReduceOp op, Stores stores);
template <>
ReduceKernel vector_kernel<std::complex<double>>(ReduceOp op, Stores stores);
template <>
ReduceKernel vector_kernel<float8_e4m3>(ReduceOp op, Stores stores);
template <>
ReduceKernel vector_kernel<float8_e5m2>(ReduceOp op, Stores stores);

}  // namespace hocket::core
