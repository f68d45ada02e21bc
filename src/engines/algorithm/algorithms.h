// The basic algorithms of collectives, one in each file. Each function returns a task that sends
// and receives messages through an Endpoint. Every algorithm supports any number of ranks from 1,
// any lengths including 0, and the in-place forms that engine::Call lists. The arrays that a caller
// passes must outlive the task. A task frees its scratch memory when it ends.
//
// catalogue.h lists the algorithms of each collective. AlgorithmEngine (algorithm_engine.cc)
// chooses one of them for a call. In the comments below, n is the number of ranks.
#pragma once

#include <cstddef>
#include <span>

#include "engine/task.h"
#include "engines/algorithm/messages.h"
#include "engines/algorithm/reduction.h"
#include "engines/algorithm/trees.h"
#include "hocket/types.h"

namespace hocket::algorithm {

// The input and output of a collective in which every rank has a complete array. `in` may be null
// on ranks other than the root of a broadcast, and `out` on ranks other than the root of a reduce.
struct Whole {
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::size_t bytes = 0;
};

// --- Barrier ------------------------------------------------------------------------------------

// In round k, a rank notifies the rank 2^k ahead and waits for the rank 2^k behind. After
// ceil(log2 n) rounds every rank has heard from all ranks, directly or indirectly.
engine::Task dissemination_barrier(Endpoint at);

// --- Broadcast ----------------------------------------------------------------------------------

// Sends the array down a tree in chunks. A rank forwards one chunk while it receives the next. A
// binomial tree with a single chunk takes ceil(log2 n) rounds, which is best for short arrays. The
// binary tree and the chain are for long arrays, where the time depends on how often a rank sends
// the whole array.
engine::Task tree_broadcast(
    Endpoint at, Whole array, int root, TreeShape shape, std::size_t chunk_bytes);
// The root scatters equal parts. Then all ranks gather the parts around a ring. The time is that of
// sending the array twice, for any number of ranks. For long arrays.
engine::Task scatter_broadcast(Endpoint at, Whole array, int root);

// --- All-gather ---------------------------------------------------------------------------------

// Gathers blocks of `share` bytes in ceil(log2 n) rounds. In each round the data of a rank doubles.
// `blocks` has space for n blocks. The caller puts this rank's data into block 0. At the end block
// i holds the data of the rank i ahead. For short blocks.
engine::Task bruck_all_gather(Endpoint at, std::byte* blocks, std::size_t share);
// Does the same as bruck_all_gather, but stores the result in rank order.
engine::Task ordered_bruck_all_gather(Endpoint at, std::span<const std::byte> own, std::byte* out);
// In round k each rank exchanges all its data with the rank 2^k away. This takes log2 n rounds, and
// the result is in rank order. If n is not a power of two, another rank represents each excess rank
// (see cores.h), which costs two more rounds. The parts must be adjacent in the array.
engine::Task doubling_all_gather(Endpoint at, std::span<const std::byte> own, Array out);
// Each part travels around the ring once, in n - 1 rounds. So a rank receives each part only once,
// and sends it at most once. For long parts, and for parts of unequal length.
engine::Task ring_all_gather(Endpoint at, std::span<const std::byte> own, Array out);
// Every rank sends its part directly to all ranks at once: one round of n - 1 messages.
engine::Task direct_all_gather(Endpoint at, std::span<const std::byte> own, Array out);

// --- Gather and scatter -------------------------------------------------------------------------

// Every rank sends its part directly to the root. Only the root uses `out`.
engine::Task linear_gather(Endpoint at, std::span<const std::byte> own, Array out, int root);
// Gathers up a binomial tree in ceil(log2 n) rounds. Only the root uses `out`. For short parts of
// equal length.
engine::Task binomial_gather(Endpoint at, std::span<const std::byte> own, std::byte* out, int root);
// The root sends every part directly to its rank. Only the root uses `in`.
engine::Task linear_scatter(Endpoint at, ConstArray in, std::span<std::byte> own, int root);
// Scatters down a binomial tree in ceil(log2 n) rounds. Only the root uses `in`. For short parts of
// equal length.
engine::Task binomial_scatter(Endpoint at, const std::byte* in, std::span<std::byte> own, int root);

// --- All-to-all ---------------------------------------------------------------------------------

// In each round, pairs of ranks (see `partner` in ranges.h) exchange their parts, in pieces of
// `scratch_bytes`.
engine::Task pairwise_all_to_all(Endpoint at, ConstArray in, Array out, std::size_t scratch_bytes);
// Does the same as pairwise_all_to_all, but the input and the output are one array. Both ranks of a
// pair must give parts of the same length. A rank that works in place may be paired with a rank
// that does not.
engine::Task in_place_all_to_all(Endpoint at, Array inout, std::size_t scratch_bytes);
// In round k, a part moves 2^k ranks ahead if bit k of its distance is set. Half of the data moves
// in each of ceil(log2 n) rounds. `in` and `out` may be the same. For short parts of `share` bytes.
engine::Task bruck_all_to_all(Endpoint at, const std::byte* in, std::byte* out, std::size_t share);

// --- Reduce-scatter -----------------------------------------------------------------------------

//
// In all three algorithms `out` may be this rank's part of `in`. If all parts have equal length,
// `out` may also be the front of `in`.

// Every rank collects its part of all ranks' arrays, piece by piece. It reduces a piece of all
// ranks together, in rank order, so that the result is rounded only once.
engine::Task pairwise_reduce_scatter(Endpoint at,
                                     Reduction reduction,
                                     ConstArray in,
                                     std::byte* out);
// Each part travels around the ring once, in chunks, and every rank adds its own data. This takes
// n - 1 rounds. No rank sends a part twice.
engine::Task ring_reduce_scatter(Endpoint at, Reduction reduction, ConstArray in, std::byte* out);
// In each round, pairs of ranks divide their remaining parts into halves. Each rank sends one half
// to its partner and reduces the half that it keeps. This takes log2 n rounds. No rank sends a part
// twice. If n is not a power of two, each excess rank first adds its array to that of another rank.
engine::Task halving_reduce_scatter(Endpoint at,
                                    Reduction reduction,
                                    ConstArray in,
                                    std::byte* out);

// --- All-reduce ---------------------------------------------------------------------------------

// Every rank collects all arrays in ceil(log2 n) rounds, and reduces them itself, in rank order.
// For short arrays.
engine::Task gathered_all_reduce(Endpoint at, Reduction reduction, Whole array);
// Every rank reduces an equal part, in rank order. Then all ranks gather the parts around a ring.
// For long arrays.
engine::Task scattered_all_reduce(Endpoint at, Reduction reduction, Whole array);
// The ranks reduce equal parts around a ring. Then they gather the parts around the same ring. For
// long arrays.
engine::Task ring_all_reduce(Endpoint at, Reduction reduction, Whole array);
// In round k, pairs of ranks 2^k apart exchange and reduce all their data. This takes log2 n
// rounds. If n is not a power of two, it takes two more rounds. For short arrays.
engine::Task doubling_all_reduce(Endpoint at, Reduction reduction, Whole array);
// Rabenseifner's algorithm: equal parts are reduced by halving, then gathered by doubling. For long
// arrays and many ranks.
engine::Task rabenseifner_all_reduce(Endpoint at, Reduction reduction, Whole array);

// --- Reduce -------------------------------------------------------------------------------------

// The root collects all arrays and reduces them in rank order. For short arrays.
engine::Task gathered_reduce(Endpoint at, Reduction reduction, Whole array, int root);
// Every rank reduces an equal part in rank order, and the root gathers the parts. A long array is
// handled in stretches, so that a rank's part of a stretch needs little memory.
engine::Task scattered_reduce(Endpoint at, Reduction reduction, Whole array, int root);
// Reduces up a tree, in chunks; see tree_broadcast.
engine::Task tree_reduce(Endpoint at,
                         Reduction reduction,
                         Whole array,
                         int root,
                         TreeShape shape,
                         std::size_t chunk_bytes);
// The ranks reduce equal parts by halving, and the root gathers the parts. For long arrays.
engine::Task rabenseifner_reduce(Endpoint at, Reduction reduction, Whole array, int root);

// --- Scan ---------------------------------------------------------------------------------------

// In scans, Reduction::ranks is the number of ranks whose data this rank's result combines; see
// engine::combined. If `out` is null, this rank needs no result.

// Every rank collects all arrays in ceil(log2 n) rounds. It reduces the arrays of the first
// reduction.ranks ranks, in rank order. For short arrays.
engine::Task gathered_scan(Endpoint at, Reduction reduction, Whole array);
// Each rank receives chunks of partial results from the previous rank, adds its own data, and sends
// them to the next rank. The data is combined in rank order. For long arrays.
engine::Task chain_scan(Endpoint at, Reduction reduction, Whole array, engine::Prefix prefix);
// The algorithm of Hillis and Steele. In round k a rank receives the partial result of the rank 2^k
// before it. This takes ceil(log2 n) rounds.
engine::Task doubling_scan(Endpoint at, Reduction reduction, Whole array, engine::Prefix prefix);

}  // namespace hocket::algorithm
