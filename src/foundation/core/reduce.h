// Reductions, copies and conversions of arrays in host memory: the inner loops of every host
// engine.
//
// All functions here are free of state, safe in any thread, take pointers of any alignment, and
// never throw once `reduce_kernel` has accepted the dtype and op. Every element is computed by
// itself with the same operations in the same order, so the bits of a result depend neither on
// alignment, nor on how an array is cut into calls, nor on the processor's vector width.
#pragma once

#include <cstddef>

#include "hocket/types.h"

namespace hocket::core {

// Whether outputs bypass the caches (non-temporal stores): right for results much larger than the
// last level cache, wrong for anything that is read again soon. A wish: outputs not aligned to
// their elements, averages of integers and 8-bit floats are stored the ordinary way.
enum class Stores { kCached, kStreaming };

// outs[.][i] = finish(sources[0][i] op sources[1][i] op ...) for i in [0, count): from left to
// right, in the accumulation type of the dtype, rounded once, at the end. kAvg adds exactly and
// then divides by `average_over`, which other ops ignore. An out may equal any of the sources,
// never overlap one or another out otherwise; `n_outs` and `n_sources` are at least 1. Streaming
// stores are fenced before the return, and need no memory in between to reach several outs that lie
// alike in their lines.
using ReduceKernel = void (*)(void* const* outs,
                              int n_outs,
                              const void* const* sources,
                              int n_sources,
                              std::size_t count,
                              int average_over);

// The kernel for this processor; hot paths look it up once a call. Throws InvalidArgument where
// `op` has no meaning on `dtype`.
ReduceKernel reduce_kernel(DType dtype, ReduceOp op, Stores stores);

// Looks up and runs, for one out.
inline void reduce(void* out,
                   const void* const* sources,
                   int n_sources,
                   std::size_t count,
                   DType dtype,
                   ReduceOp op,
                   int average_over,
                   Stores stores) {
  reduce_kernel(dtype, op, stores)(&out, 1, sources, n_sources, count, average_over);
}

// out[i] = a[i] + b[i] in `dtype`. `out` may equal either.
void add(void* out, const void* a, const void* b, std::size_t count, DType dtype);

// memcpy with a choice of stores. Streaming stores are fenced before the return.
void copy(void* out, const void* in, std::size_t bytes, Stores stores);
// Whether the processor copies by itself what is longer than a few KiB (fast short REP MOV; Intel
// 64 and IA-32 Architectures Software Developer's Manual, volume 1, 7.3.9.4), as memcpy then lets
// it: it takes lines over for the copy without fetching them.
bool copies_by_itself() noexcept;

// The type sums of `dtype` are added in: float32 for floats of 16 and 8 bits; see also averages.h.
constexpr DType accumulation_type(DType dtype) noexcept {
  switch (dtype) {
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat8E4M3:
    case DType::kFloat8E5M2:
      return DType::kFloat32;
    case DType::kBool:
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kUInt8:
    case DType::kUInt16:
    case DType::kUInt32:
    case DType::kUInt64:
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kComplex64:
    case DType::kComplex128:
      break;
  }
  return dtype;
}

// Converts `count` elements of `from` into its accumulation type.
void widen(void* out, const void* in, std::size_t count, DType from);

// Finishes `count` accumulated elements: kAvg divides by `average_over`, then they are rounded
// from the accumulation type to `to`. `out` may equal `in` where the two types are the same.
void narrow(void* out, const void* in, std::size_t count, DType to, ReduceOp op, int average_over);

}  // namespace hocket::core
