// The computation of a reduction.
#pragma once

#include <cstddef>
#include <span>

#include "foundation/core/reduce.h"
#include "hocket/types.h"

namespace hocket::algorithm {

// A value. `ranks` is the number of ranks in the whole reduction; an average divides by it.
struct Reduction {
  DType dtype;
  ReduceOp op;
  int ranks;
  std::size_t scratch_bytes;  // approximate memory of a task
  std::size_t chunk_bytes;    // of the pieces of pipelines
  core::ReduceKernel kernel;

  // Computes out = the reduction of `bytes` bytes of each source. Sources are in rank order.
  void operator()(std::byte* out, std::span<const void* const> sources, std::size_t bytes) const {
    void* const to = out;
    const int n = static_cast<int>(sources.size());
    kernel(&to, 1, sources.data(), n, bytes / size_of(dtype), ranks);
  }
};

}  // namespace hocket::algorithm
