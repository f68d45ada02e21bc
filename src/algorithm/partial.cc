#include "algorithm/partial.h"

#include <algorithm>

namespace hocket::algorithm {

void Partial::load(std::byte* partial, const std::byte* in, std::size_t count) const {
  if (count == 0 || partial == in) return;
  if (is_plain()) {
    core::copy(partial, in, count * element(), core::Stores::kCached);
  } else {
    core::widen(partial, in, count, reduction_.dtype);
  }
}

// By way of a stretch that stays in the first-level cache.
void Partial::fold_in(std::byte* partial, const std::byte* in, std::size_t count) const {
  if (is_plain()) {
    fold(partial, partial, in, count);
    return;
  }
  constexpr std::size_t kStretch = 1024;
  alignas(64) std::byte wide[kStretch * 4];  // what rounds is added up in float32
  const std::size_t narrow_element = size_of(reduction_.dtype);
  for (std::size_t at = 0; at < count; at += kStretch) {
    const std::size_t length = std::min(kStretch, count - at);
    core::widen(wide, in + at * narrow_element, length, reduction_.dtype);
    fold(partial + at * element(), partial + at * element(), wide, length);
  }
}

void Partial::finish(std::byte* out, const std::byte* partial, std::size_t count) const {
  if (count == 0) return;
  if (is_plain() && reduction_.op != ReduceOp::kAvg) {
    if (out != partial) core::copy(out, partial, count * element(), core::Stores::kCached);
    return;
  }
  if (is_plain()) {
    const void* const source = partial;
    core::reduce(out,
                 &source,
                 1,
                 count,
                 reduction_.dtype,
                 ReduceOp::kAvg,
                 reduction_.ranks,
                 core::Stores::kCached);
    return;
  }
  core::narrow(out, partial, count, reduction_.dtype, reduction_.op, reduction_.ranks);
}

void Partial::finish_fold(std::byte* out,
                          std::byte* partial,
                          const std::byte* in,
                          std::size_t count) const {
  if (is_plain() && reduction_.op != ReduceOp::kAvg) return fold(out, partial, in, count);
  fold_in(partial, in, count);
  finish(out, partial, count);
}

}  // namespace hocket::algorithm
