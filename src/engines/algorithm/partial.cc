#include "engines/algorithm/partial.h"

#include <algorithm>

namespace hocket::algorithm {

void Partial::load(std::byte* partial, const std::byte* in, std::size_t count) const {
  if (count == 0 || partial == in) return;
  if (is_plain()) {
    core::copy(partial, in, count * element(), core::Stores::kCached);
  } else {
    core::widen(partial, in, count, array_dtype_, whole_op_);
  }
}

// Widens `in` block by block, into a buffer that stays in the first-level cache.
void Partial::fold_in(std::byte* partial, const std::byte* in, std::size_t count) const {
  if (is_plain()) {
    fold(partial, partial, in, count);
    return;
  }
  alignas(64) std::byte wide[4096];
  const std::size_t stretch = sizeof(wide) / element();
  const std::size_t narrow_element = size_of(array_dtype_);
  for (std::size_t at = 0; at < count; at += stretch) {
    const std::size_t length = std::min(stretch, count - at);
    core::widen(wide, in + at * narrow_element, length, array_dtype_, whole_op_);
    fold(partial + at * element(), partial + at * element(), wide, length);
  }
}

void Partial::finish(std::byte* out, const std::byte* partial, std::size_t count) const {
  if (count == 0) return;
  if (is_plain() && whole_op_ != ReduceOp::kAvg) {
    if (out != partial) core::copy(out, partial, count * element(), core::Stores::kCached);
    return;
  }
  if (is_plain()) {
    const void* const source = partial;
    core::reduce(
        out, &source, 1, count, array_dtype_, ReduceOp::kAvg, ranks_, core::Stores::kCached);
    return;
  }
  core::narrow(out, partial, count, array_dtype_, whole_op_, ranks_);
}

void Partial::finish_fold(std::byte* out,
                          std::byte* partial,
                          const std::byte* in,
                          std::size_t count) const {
  if (is_plain() && whole_op_ != ReduceOp::kAvg) return fold(out, partial, in, count);
  fold_in(partial, in, count);
  finish(out, partial, count);
}

}  // namespace hocket::algorithm
