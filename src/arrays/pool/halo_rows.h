// The rows that two arrays share: their position, and the exchange.
#pragma once

#include <cstddef>
#include <vector>

#include "arrays/pool/pool.h"
#include "hocket/array_view.h"
#include "hocket/device_pool.h"

namespace hocket::pool {

// Position of the rows in arrays of one shape: `outer` strips of `bytes`, at a distance of
// `stride`. A value.
//
//   | offset | bytes |      | bytes |      | bytes | ...
//            |<-- stride -->|
struct HaloLayout {
  std::size_t outer, offset, stride, bytes;

  std::size_t total() const noexcept { return outer * bytes; }
  std::byte* strip(ArrayView array, std::size_t o) const noexcept {
    return static_cast<std::byte*>(array.data()) + offset + o * stride;
  }
};
HaloLayout halo_layout(const HaloShape& shape, std::size_t row, std::size_t overlap, DType dtype);

// The rows of one side, contiguous in host memory.
using Rows = std::vector<std::byte>;
// Copy the rows out of an array, and back. `state` is a worker whose GPU makes the copies after all
// work on its stream; the host waits for them. The array may be on any worker's GPU. If `state` is
// null, the array is in host memory.
Rows take(const WorkerState* state, ArrayView array, const HaloLayout& layout);
void put(const WorkerState* state, ArrayView array, const HaloLayout& layout, const Rows& rows);

// Swaps or blends one strip; `low` belongs to the lower worker.
void swap_or_blend(std::byte* low,
                   std::byte* high,
                   std::size_t bytes,
                   std::size_t overlap,
                   DType dtype,
                   HaloOptions::Mode mode);

}  // namespace hocket::pool
