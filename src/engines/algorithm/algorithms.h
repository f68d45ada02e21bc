// The basic algorithms, one in each file. Each is a task over an Endpoint. They support any number
// of ranks from 1, any lengths including 0, and the in-place forms that engine::Call lists. Memory
// arguments must outlive the task. A task frees its other memory when it ends.
//
// AlgorithmEngine (algorithm_engine.cc) chooses among the algorithms for the same call, from the
// list in catalogue.h.
#pragma once

#include <cstddef>
#include <span>

#include "engine/task.h"
#include "engines/algorithm/messages.h"
#include "engines/algorithm/reduction.h"
#include "engines/algorithm/trees.h"
#include "hocket/types.h"

namespace hocket::algorithm {

// An array that every rank has completely. Ranks other than the root may lack `in` (broadcast) or
// `out` (reduce).
struct Whole {
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::size_t bytes = 0;
};

// --- Barrier ------------------------------------------------------------------------------------

// In round k, a rank notifies the rank 2^k ahead and waits for the one 2^k behind. After ceil(log2
// n) rounds every rank depends on all ranks, directly or indirectly.
engine::Task dissemination_barrier(Endpoint at);

// --- Broadcast ----------------------------------------------------------------------------------

// Sends down a tree in chunks; a rank forwards one chunk while it receives the next. With one chunk
// and the binomial tree it takes ceil(log2 n) rounds, which is best for short arrays. The binary
// tree and the chain are for long arrays, where the time depends on how often a rank sends the
// array.
engine::Task tree_broadcast(
    Endpoint at, Whole array, int root, TreeShape shape, std::size_t chunk_bytes);
// The root scatters equal parts, which then go around a ring. The array travels twice, for any
// number of ranks. For long arrays.
engine::Task scatter_broadcast(Endpoint at, Whole array, int root);

// --- All-gather ---------------------------------------------------------------------------------

// Gathers blocks of `share` bytes in ceil(log2 n) rounds. The data of a rank doubles in each round.
// `blocks` has space for n blocks. Block 0 contains this rank's data from the start, and block i
// gets that of the rank i ahead. For short blocks.
engine::Task bruck_all_gather(Endpoint at, std::byte* blocks, std::size_t share);
// Does the same with the result in rank order.
engine::Task ordered_bruck_all_gather(Endpoint at, std::span<const std::byte> own, std::byte* out);
// Ranks exchange all their data with a rank 2^k away, with growing k. This takes ceil(log2 n)
// rounds and leaves nothing to reorder. If n is not a power of two, each excess rank is represented
// by another rank, which costs two rounds. Parts must follow each other.
engine::Task doubling_all_gather(Endpoint at, std::span<const std::byte> own, Array out);
// Each part travels around the ring once, in n - 1 rounds, so no rank sends or receives a byte
// twice. For long parts, and for parts of unequal length.
engine::Task ring_all_gather(Endpoint at, std::span<const std::byte> own, Array out);
// Every rank sends its part directly to all ranks at once: one round of n - 1 messages.
engine::Task direct_all_gather(Endpoint at, std::span<const std::byte> own, Array out);

// --- Gather and scatter -------------------------------------------------------------------------

// Every rank sends its part directly to the root. `out` matters at the root.
engine::Task linear_gather(Endpoint at, std::span<const std::byte> own, Array out, int root);
// Gathers up a binomial tree in ceil(log2 n) rounds, for short parts of equal length. `out` is the
// root's.
engine::Task binomial_gather(Endpoint at, std::span<const std::byte> own, std::byte* out, int root);
// The root sends every part directly to its rank. `in` matters at the root.
engine::Task linear_scatter(Endpoint at, ConstArray in, std::span<std::byte> own, int root);
// Scatters down a binomial tree, for short parts of equal length. `in` is the root's.
engine::Task binomial_scatter(Endpoint at, const std::byte* in, std::span<std::byte> own, int root);

// --- All-to-all ---------------------------------------------------------------------------------

// In each of n rounds, pairs of ranks (see `partner`) exchange parts, in pieces of `scratch_bytes`.
engine::Task pairwise_all_to_all(Endpoint at, ConstArray in, Array out, std::size_t scratch_bytes);
// Does the same within one array. Each pair agrees on one length. A rank that works in place may be
// paired with one that does not.
engine::Task in_place_all_to_all(Endpoint at, Array inout, std::size_t scratch_bytes);
// Parts of `share` bytes travel by the bits of their distance. In each of ceil(log2 n) rounds half
// of the data moves. For short parts. `in` and `out` may be the same.
engine::Task bruck_all_to_all(Endpoint at, const std::byte* in, std::byte* out, std::size_t share);

// --- Reduce-scatter -----------------------------------------------------------------------------
//
// `out` may be the front of `in` if all parts have equal length, or this rank's part of `in`.

// Every rank collects all versions of its part, piece by piece. It reduces each piece at once, in
// rank order, and rounds once.
engine::Task pairwise_reduce_scatter(Endpoint at,
                                     Reduction reduction,
                                     ConstArray in,
                                     std::byte* out);
// Each part travels around the ring once, in chunks, and every rank adds its own data. It takes n -
// 1 rounds, and no byte is sent twice.
engine::Task ring_reduce_scatter(Endpoint at, Reduction reduction, ConstArray in, std::byte* out);
// Pairs of ranks exchange halves of their remaining parts and reduce the half that they keep. It
// takes ceil(log2 n) rounds, and no byte is sent twice. If n is not a power of two, each excess
// rank first adds its array to another rank's.
engine::Task halving_reduce_scatter(Endpoint at,
                                    Reduction reduction,
                                    ConstArray in,
                                    std::byte* out);

// --- All-reduce ---------------------------------------------------------------------------------

// Every rank collects all arrays and reduces them itself, in rank order, in ceil(log2 n) rounds.
// For short arrays.
engine::Task gathered_all_reduce(Endpoint at, Reduction reduction, Whole array);
// Every rank reduces an equal part, in rank order. Then the parts go around a ring. For long
// arrays.
engine::Task scattered_all_reduce(Endpoint at, Reduction reduction, Whole array);
// Equal parts are reduced around a ring, then go around it again. For long arrays.
engine::Task ring_all_reduce(Endpoint at, Reduction reduction, Whole array);
// Pairs of ranks 2^k apart exchange and reduce all their data, in ceil(log2 n) rounds. If n is not
// a power of two, there are two more. For short arrays.
engine::Task doubling_all_reduce(Endpoint at, Reduction reduction, Whole array);
// Rabenseifner's algorithm: equal parts are reduced by halving, then gathered by doubling. For long
// arrays and many ranks.
engine::Task rabenseifner_all_reduce(Endpoint at, Reduction reduction, Whole array);

// --- Reduce -------------------------------------------------------------------------------------

// The root collects all arrays and reduces them in rank order. For short arrays.
engine::Task gathered_reduce(Endpoint at, Reduction reduction, Whole array, int root);
// Every rank reduces an equal part in rank order, and the root gathers the parts. It works in
// stretches, so that a part needs little memory.
engine::Task scattered_reduce(Endpoint at, Reduction reduction, Whole array, int root);
// Reduces up a tree, in chunks; see tree_broadcast.
engine::Task tree_reduce(Endpoint at,
                         Reduction reduction,
                         Whole array,
                         int root,
                         TreeShape shape,
                         std::size_t chunk_bytes);
// Equal parts are reduced by halving, and the root gathers them. For long arrays.
engine::Task rabenseifner_reduce(Endpoint at, Reduction reduction, Whole array, int root);

// --- Scan ---------------------------------------------------------------------------------------
// Reduction::ranks is engine::combined. A null `out` gets nothing.

// Every rank collects all arrays and reduces those of the first reduction.ranks ranks, in rank
// order, in ceil(log2 n) rounds. For short arrays.
engine::Task gathered_scan(Endpoint at, Reduction reduction, Whole array);
// Chunks go from each rank to the next one, which adds its own data, in rank order. For long
// arrays.
engine::Task chain_scan(Endpoint at, Reduction reduction, Whole array, engine::Prefix prefix);
// The algorithm of Hillis and Steele: a rank receives the partial result of the rank 2^k before it,
// with growing k, in ceil(log2 n) rounds.
engine::Task doubling_scan(Endpoint at, Reduction reduction, Whole array, engine::Prefix prefix);

}  // namespace hocket::algorithm
