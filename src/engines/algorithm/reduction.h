// The parameters of a reduction, and its computation.
#pragma once

#include <cstddef>
#include <span>

#include "foundation/core/reduce.h"
#include "hocket/types.h"

namespace hocket::algorithm {

// A value.
struct Reduction {
  DType dtype;
  ReduceOp op;
  int ranks;                  // number of ranks in the reduction, by which an average divides
  std::size_t scratch_bytes;  // approximate memory of a task
  std::size_t chunk_bytes;    // size of a chunk in a pipeline
  core::ReduceKernel kernel;

  // Reduces `bytes` bytes of each source into `out`. `sources` must be in rank order.
  void operator()(std::byte* out, std::span<const void* const> sources, std::size_t bytes) const {
    void* const to = out;
    const int n = static_cast<int>(sources.size());
    kernel(&to, 1, sources.data(), n, bytes / size_of(dtype), ranks);
  }
};

}  // namespace hocket::algorithm
