// Declares the functions of the vectorized files. reduce.cc uses them, and so do callers that
// stream many copies. Each function selects the code for this processor at run time.
#pragma once

#include <complex>
#include <cstddef>

#include "foundation/core/reduce.h"

namespace hocket::core {

// Returns the kernel for element type T. Null if there is no vectorized one. The files kernels_*.cc
// specialize it for bool, floats and complex numbers.
template <typename T>
ReduceKernel vector_kernel(ReduceOp op, Stores stores);
// Returns the kernel of a sum, product or bit operation, for unsigned T. The signed integer of the
// same width uses the same code.
template <typename T>
ReduceKernel wrapping_kernel(ReduceOp op, Stores stores);
// Returns the kernel of a minimum or maximum, for every integer T.
template <typename T>
ReduceKernel extremes_kernel(ReduceOp op, Stores stores);

// Convert small floats to float32 and back. Narrowing divides by `divisor` first.
template <typename T>
void widen_small(void* out, const void* in, std::size_t count);
template <typename T>
void narrow_small(void* out, const void* in, std::size_t count, float divisor);

// Copies the contents of the first of `outs` to the others.
void copy_to_others(void* const* outs, int n_outs, std::size_t bytes);

// Copies with streaming stores, without a fence after them.
void stream(void* out, const void* in, std::size_t bytes);
// Orders the stores of `stream` before all later stores.
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
