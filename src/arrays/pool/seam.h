// The rows that two arrays share: where they lie, and what becomes of them.
#pragma once

#include <cstddef>
#include <vector>

#include "arrays/pool/pool.h"
#include "hocket/array_view.h"
#include "hocket/device_pool.h"

namespace hocket::pool {

// Where the rows lie in arrays of one shape: `outer` strips of `bytes`, `stride` apart. A value.
struct Seam {
  std::size_t outer, offset, stride, bytes;

  std::size_t total() const noexcept { return outer * bytes; }
  std::byte* strip(ArrayView array, std::size_t o) const noexcept {
    return static_cast<std::byte*>(array.data()) + offset + o * stride;
  }
};
Seam seam_at(const HaloShape& shape, std::size_t row, std::size_t overlap, DType dtype);

// The rows of one side, one after the other in host memory.
using Rows = std::vector<std::byte>;
// Takes the rows out of an array, and puts them back. By a worker with a GPU: behind all that its
// stream has; the host waits for it. The GPU's memory may be any worker's. Null: host memory.
Rows take(const Seat* seat, ArrayView array, const Seam& seam);
void put(const Seat* seat, ArrayView array, const Seam& seam, const Rows& rows);

// Swaps or blends one strip: `low` is the lower worker's.
void mend(std::byte* low,
          std::byte* high,
          std::size_t bytes,
          std::size_t overlap,
          DType dtype,
          HaloOptions::Mode mode);

}  // namespace hocket::pool
