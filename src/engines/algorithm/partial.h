// What travels where ranks send each other results that are not complete yet.
#pragma once

#include <cstddef>

#include "engines/algorithm/reduction.h"
#include "foundation/core/averages.h"
#include "hocket/types.h"

namespace hocket::algorithm {

// Partial results lie in the accumulation type, and averages in it as sums, so that a result is
// rounded and divided once, at the end, by whatever way it came. Averages of integers are exact. A
// value; counts are elements.
class Partial {
 public:
  // Of arrays of `dtype`, in the end reduced by `op` over so many ranks.
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
  // How two of them are folded.
  ReduceOp op() const noexcept { return op_; }
  std::size_t element() const noexcept { return size_of(dtype_); }
  // Whether an array's own elements are partial results as they are.
  bool is_plain() const noexcept { return dtype_ == array_dtype_; }

  // partial = in. `partial` may equal `in` where that is plain.
  void load(std::byte* partial, const std::byte* in, std::size_t count) const;
  // out = a op b; `out` may equal either.
  void fold(std::byte* out, const std::byte* a, const std::byte* b, std::size_t count) const {
    void* const to = out;
    const void* const sources[] = {a, b};
    kernel_(&to, 1, sources, 2, count, 1);
  }
  // partial = partial op in, of an array's elements.
  void fold_in(std::byte* partial, const std::byte* in, std::size_t count) const;
  // The result of what is complete. `out` may equal `partial` where that is plain.
  void finish(std::byte* out, const std::byte* partial, std::size_t count) const;
  // The result of partial op in, in one pass where that can be; `partial` is undefined afterwards.
  // `out` may equal `in`, and `partial` as above.
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
