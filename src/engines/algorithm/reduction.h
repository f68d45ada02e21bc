// What a reduction computes.
#pragma once

#include <cstddef>
#include <span>

#include "foundation/core/reduce.h"
#include "hocket/types.h"

namespace hocket::algorithm {

// A value. Counts ranks that take part in the whole reduction, which an average divides by.
struct Reduction {
  DType dtype;
  ReduceOp op;
  int ranks;
  std::size_t scratch_bytes;  // about how much memory a task may take
  std::size_t chunk_bytes;    // of the pieces that pipelines are made of
  core::ReduceKernel kernel;

  // out = the reduction of `bytes` of each source; sources are in rank order.
  void operator()(std::byte* out, std::span<const void* const> sources, std::size_t bytes) const {
    void* const to = out;
    const int n = static_cast<int>(sources.size());
    kernel(&to, 1, sources.data(), n, bytes / size_of(dtype), ranks);
  }
};

}  // namespace hocket::algorithm
