// Reductions, copies and conversions of arrays in host memory. They are the inner loops of all
// engines for host memory.
//
// The functions have no state. Any thread may call them, with pointers of any alignment. They never
// throw once `reduce_kernel` has accepted the dtype and op. Every element is computed
// independently, with the same operations in the same order. So the bits of a result depend neither
// on alignment, nor on the division into calls, nor on the processor's vector width.
#pragma once

#include <cstddef>

#include "hocket/types.h"

namespace hocket::core {

// The kind of stores for results. Streaming (non-temporal) stores bypass the caches. They are right
// for results much larger than the last-level cache, and wrong for data that is read again soon.
// kStreaming is a hint: unaligned outputs, 8-bit floats and integer averages use ordinary stores.
enum class Stores { kCached, kStreaming };

// Computes outs[.][i] = finish(sources[0][i] op sources[1][i] op ...) for i in [0, count). It works
// from left to right in the accumulation type of the dtype, and rounds once at the end. kAvg adds
// exactly and then divides by `average_over`, which other ops ignore.
//
// An out may equal any source. Otherwise outs must not overlap sources or each other. `n_outs` and
// `n_sources` are at least 1. Streaming stores are fenced before the kernel returns. If all outs
// have the same offset in their cache lines, a streaming kernel writes each vector to all of them
// at once.
using ReduceKernel = void (*)(void* const* outs,
                              int n_outs,
                              const void* const* sources,
                              int n_sources,
                              std::size_t count,
                              int average_over);

// Returns the kernel for this processor. Throws InvalidArgument if `op` does not support `dtype`. A
// hot path looks the kernel up once for each call, not for each chunk.
ReduceKernel reduce_kernel(DType dtype, ReduceOp op, Stores stores);

// Looks up a kernel and runs it, for one out.
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

// Computes out[i] = a[i] + b[i] in `dtype`. `out` may equal `a` or `b`.
void add(void* out, const void* a, const void* b, std::size_t count, DType dtype);

// Copies like memcpy, with a choice of stores. Streaming stores are fenced before the return.
void copy(void* out, const void* in, std::size_t bytes, Stores stores);
// Returns whether memcpy of more than a few KiB uses the processor's fast short REP MOV (Intel 64
// and IA-32 Architectures Software Developer's Manual, volume 1, 7.3.9.4). Such a copy takes
// ownership of the lines that it writes without fetching them.
bool copies_by_itself() noexcept;

// Returns the type in which sums of `dtype` accumulate: float32 for floats of 16 and 8 bits, else
// `dtype`. See also averages.h.
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

// Converts `count` accumulated elements to results. kAvg divides by `average_over`; then all are
// rounded to `to`. `out` may equal `in` if the accumulation type is `to`.
void narrow(void* out, const void* in, std::size_t count, DType to, ReduceOp op, int average_over);

}  // namespace hocket::core
