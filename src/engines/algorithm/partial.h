// The partial results that ranks send to each other during a reduction.
#pragma once

#include <cstddef>

#include "engines/algorithm/reduction.h"
#include "foundation/core/averages.h"
#include "hocket/types.h"

namespace hocket::algorithm {

// The element type and the operations of partial results. Partial results have the accumulation
// type, and for an average they are sums. So a result is rounded and divided only once, at the end,
// and averages of integers are exact. All counts are elements. A value.
class Partial {
 public:
  // For arrays of `dtype` that are reduced by `op` over `ranks` ranks.
  Partial(DType dtype, ReduceOp op, int ranks)
      : array_dtype_(dtype),
        whole_op_(op),
        ranks_(ranks),
        dtype_(rounds(op) ? core::accumulation_type(dtype, op) : dtype),
        op_(op == ReduceOp::kAvg ? ReduceOp::kSum : op),
        kernel_(core::reduce_kernel(dtype_, op_, core::Stores::kCached)) {}
  explicit Partial(const Reduction& reduction)
      : Partial(reduction.dtype, reduction.op, reduction.ranks) {}

  DType dtype() const noexcept { return dtype_; }
  // Returns the operation that combines two partial results.
  ReduceOp op() const noexcept { return op_; }
  std::size_t element() const noexcept { return size_of(dtype_); }
  // Returns whether partial results have the array's element type, so that the array's elements
  // already are partial results.
  bool is_plain() const noexcept { return dtype_ == array_dtype_; }

  // Computes partial = in. `partial` may equal `in` if is_plain().
  void load(std::byte* partial, const std::byte* in, std::size_t count) const;
  // Computes out = a op b. `out` may equal `a` or `b`.
  void fold(std::byte* out, const std::byte* a, const std::byte* b, std::size_t count) const {
    void* const to = out;
    const void* const sources[] = {a, b};
    kernel_(&to, 1, sources, 2, count, 1);
  }
  // Computes partial = partial op in, where `in` has elements of the array.
  void fold_in(std::byte* partial, const std::byte* in, std::size_t count) const;
  // Converts `partial`, which combines all ranks, to the result. `out` may equal `partial` if
  // is_plain().
  void finish(std::byte* out, const std::byte* partial, std::size_t count) const;
  // Computes the result of (partial op in), in one pass if possible. `in` has elements of the
  // array. Afterwards the contents of `partial` are undefined. `out` may equal `in`; if is_plain(),
  // it may also equal `partial`.
  void finish_fold(std::byte* out,
                   std::byte* partial,
                   const std::byte* in,
                   std::size_t count) const;

 private:
  static bool rounds(ReduceOp op) noexcept {
    return op == ReduceOp::kSum || op == ReduceOp::kAvg || op == ReduceOp::kProduct;
  }

  DType array_dtype_;
  ReduceOp whole_op_;
  int ranks_;
  DType dtype_;
  ReduceOp op_;
  core::ReduceKernel kernel_;
};

}  // namespace hocket::algorithm
