// One plain algorithm a file, each a task over an Endpoint. They take any number of ranks from 1,
// any lengths including none, and the in-place forms that engine::Call lists. Memory that is passed
// must outlive the task; what a task needs beside is freed with it.
//
// Which of two algorithms for the same thing is used is decided in algorithm_engine.cc alone.
#pragma once

#include <cstddef>
#include <span>

#include "algorithm/messages.h"
#include "core/reduce.h"
#include "engine/task.h"
#include "hocket/types.h"

namespace hocket::algorithm {

// What is to be computed. A value.
struct Reduction {
  DType dtype;
  ReduceOp op;
  int ranks;                  // also what an average divides by
  std::size_t scratch_bytes;  // about how much memory a task may take
  core::ReduceKernel kernel;

  // out = the reduction of `bytes` of each source; sources are in rank order.
  void operator()(std::byte* out, std::span<const void* const> sources, std::size_t bytes) const {
    kernel(out, sources.data(), static_cast<int>(sources.size()), bytes / size_of(dtype), ranks);
  }
};

// One array that every rank has as a whole. A non-root may lack `in` (broadcast) or `out` (reduce).
struct Whole {
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::size_t bytes = 0;
};

// In round k, tell the rank 2^k ahead and hear from the one 2^k behind: after ceil(log2 n) rounds
// everybody has heard of everybody, directly or not.
engine::Task dissemination_barrier(Endpoint at);

// Down a binomial tree, whole: ceil(log2 n) rounds. For what is short.
engine::Task binomial_broadcast(Endpoint at, Whole array, int root);
// The root scatters even parts, then the parts go round a ring: the array travels twice, however
// many ranks there are. For what is long.
engine::Task scatter_broadcast(Endpoint at, Whole array, int root);

// Everybody's block, all of `share` bytes, to everybody in ceil(log2 n) rounds: what a rank has
// doubles in each. `blocks` has room for n; block 0 is this rank's and already there, block i
// becomes the one of the rank i ahead. For what is short.
engine::Task bruck_all_gather(Endpoint at, std::byte* blocks, std::size_t share);
// The same with the result in rank order.
engine::Task ordered_bruck_all_gather(Endpoint at, std::span<const std::byte> own, std::byte* out);
// Each part travels once round the ring, n - 1 rounds: every rank sends and receives no byte twice.
// For what is long, and for parts of unequal length.
engine::Task ring_all_gather(Endpoint at, std::span<const std::byte> own, Array out);

// Every rank sends its part straight to the root. `out` matters at the root.
engine::Task linear_gather(Endpoint at, std::span<const std::byte> own, Array out, int root);
// The root sends every part straight to its rank. `in` matters at the root.
engine::Task linear_scatter(Endpoint at, ConstArray in, std::span<std::byte> own, int root);

// In each of n rounds the ranks meet in pairs, see `partner`, and swap parts in pieces of
// `scratch_bytes`.
engine::Task pairwise_all_to_all(Endpoint at, ConstArray in, Array out, std::size_t scratch_bytes);
// The same with the parts of one array, for which each pair agrees on one length. Ranks that work
// in place and ranks that do not may meet.
engine::Task in_place_all_to_all(Endpoint at, Array inout, std::size_t scratch_bytes);

// Every rank collects everybody's version of its own part, piece by piece, and reduces each piece
// in one go, in rank order, rounding once. `out` may be the front of `in` where all parts are of
// one length, or this rank's part of it.
engine::Task pairwise_reduce_scatter(Endpoint at,
                                     Reduction reduction,
                                     ConstArray in,
                                     std::byte* out);

// Every rank collects all arrays and reduces for itself: ceil(log2 n) rounds. For what is short.
engine::Task gathered_all_reduce(Endpoint at, Reduction reduction, Whole array);
// Every rank reduces an even part, then the parts go round a ring. For what is long.
engine::Task scattered_all_reduce(Endpoint at, Reduction reduction, Whole array);

// The root collects all arrays and reduces. For what is short.
engine::Task gathered_reduce(Endpoint at, Reduction reduction, Whole array, int root);
// Every rank reduces an even part, which the root gathers; stretch by stretch, so that a part
// needs little memory on its way.
engine::Task scattered_reduce(Endpoint at, Reduction reduction, Whole array, int root);

}  // namespace hocket::algorithm
