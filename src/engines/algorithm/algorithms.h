// One plain algorithm a file, each a task over an Endpoint. They take any number of ranks from 1,
// any lengths including none, and the in-place forms that engine::Call lists. Memory that is passed
// must outlive the task; what a task needs beside is freed with it.
//
// Which of several algorithms for the same thing is used is decided in catalogue.cc alone.
#pragma once

#include <cstddef>
#include <span>

#include "engine/task.h"
#include "engines/algorithm/messages.h"
#include "engines/algorithm/reduction.h"
#include "engines/algorithm/trees.h"
#include "hocket/types.h"

namespace hocket::algorithm {

// One array that every rank has as a whole. A non-root may lack `in` (broadcast) or `out` (reduce).
struct Whole {
  const std::byte* in = nullptr;
  std::byte* out = nullptr;
  std::size_t bytes = 0;
};

// --- Barrier ------------------------------------------------------------------------------------

// In round k, tell the rank 2^k ahead and hear from the one 2^k behind: after ceil(log2 n) rounds
// everybody has heard of everybody, directly or not.
engine::Task dissemination_barrier(Endpoint at);

// --- Broadcast ----------------------------------------------------------------------------------

// Down a tree, in chunks: each is handed on while the next one comes. Of one chunk, down the
// binomial tree, this is ceil(log2 n) rounds, for what is short; the binary tree and the chain are
// for what is long, where what counts is how often a rank has to send the array on.
engine::Task tree_broadcast(
    Endpoint at, Whole array, int root, TreeShape shape, std::size_t chunk_bytes);
// The root scatters even parts, then the parts go round a ring: the array travels twice, however
// many ranks there are. For what is long.
engine::Task scatter_broadcast(Endpoint at, Whole array, int root);

// --- All-gather ---------------------------------------------------------------------------------

// Everybody's block, all of `share` bytes, to everybody in ceil(log2 n) rounds: what a rank has
// doubles in each. `blocks` has room for n; block 0 is this rank's and already there, block i
// becomes the one of the rank i ahead. For what is short.
engine::Task bruck_all_gather(Endpoint at, std::byte* blocks, std::size_t share);
// The same with the result in rank order.
engine::Task ordered_bruck_all_gather(Endpoint at, std::span<const std::byte> own, std::byte* out);
// Ranks swap all they have with one that is 2^k away, k growing: ceil(log2 n) rounds, and nothing
// to be put in order at the end. Beyond a power of two, each rank that is too many has another
// speak for it, which costs two rounds. Parts must lie one after the other.
engine::Task doubling_all_gather(Endpoint at, std::span<const std::byte> own, Array out);
// Each part travels once round the ring, n - 1 rounds: every rank sends and receives no byte twice.
// For what is long, and for parts of unequal length.
engine::Task ring_all_gather(Endpoint at, std::span<const std::byte> own, Array out);
// Everybody's part straight to everybody, all at once: one round of n - 1 messages.
engine::Task direct_all_gather(Endpoint at, std::span<const std::byte> own, Array out);

// --- Gather and scatter -------------------------------------------------------------------------

// Every rank sends its part straight to the root. `out` matters at the root.
engine::Task linear_gather(Endpoint at, std::span<const std::byte> own, Array out, int root);
// Up a binomial tree, ceil(log2 n) rounds, for short parts of one length: `out` is the root's.
engine::Task binomial_gather(Endpoint at, std::span<const std::byte> own, std::byte* out, int root);
// The root sends every part straight to its rank. `in` matters at the root.
engine::Task linear_scatter(Endpoint at, ConstArray in, std::span<std::byte> own, int root);
// Down a binomial tree, for short parts of one length: `in` is the root's.
engine::Task binomial_scatter(Endpoint at, const std::byte* in, std::span<std::byte> own, int root);

// --- All-to-all ---------------------------------------------------------------------------------

// In each of n rounds the ranks meet in pairs, see `partner`, and swap parts in pieces of
// `scratch_bytes`.
engine::Task pairwise_all_to_all(Endpoint at, ConstArray in, Array out, std::size_t scratch_bytes);
// The same with the parts of one array, for which each pair agrees on one length. Ranks that work
// in place and ranks that do not may meet.
engine::Task in_place_all_to_all(Endpoint at, Array inout, std::size_t scratch_bytes);
// Parts of `share` bytes travel by the bits of how far they have to go: ceil(log2 n) rounds, in
// each of which half of everything moves. For what is short. `in` and `out` may be the same.
engine::Task bruck_all_to_all(Endpoint at, const std::byte* in, std::byte* out, std::size_t share);

// --- Reduce-scatter
// ------------------------------------------------------------------------------- `out` may be the
// front of `in` where all parts are of one length, or this rank's part of it.

// Every rank collects everybody's version of its own part, piece by piece, and reduces each piece
// in one go, in rank order, rounding once.
engine::Task pairwise_reduce_scatter(Endpoint at,
                                     Reduction reduction,
                                     ConstArray in,
                                     std::byte* out);
// Each part goes once round the ring, in chunks, and every rank folds its own into it: n - 1
// rounds, no byte is sent twice.
engine::Task ring_reduce_scatter(Endpoint at, Reduction reduction, ConstArray in, std::byte* out);
// Ranks swap halves of what they are still responsible for, and fold what they keep: ceil(log2 n)
// rounds, no byte is sent twice. Beyond a power of two, each rank that is too many first adds its
// array to another's.
engine::Task halving_reduce_scatter(Endpoint at,
                                    Reduction reduction,
                                    ConstArray in,
                                    std::byte* out);

// --- All-reduce ---------------------------------------------------------------------------------

// Every rank collects all arrays and reduces for itself, in rank order: ceil(log2 n) rounds. For
// what is short.
engine::Task gathered_all_reduce(Endpoint at, Reduction reduction, Whole array);
// Every rank reduces an even part, in rank order, then the parts go round a ring. For what is long.
engine::Task scattered_all_reduce(Endpoint at, Reduction reduction, Whole array);
// Even parts are reduced round a ring, then go round it once more. For what is long.
engine::Task ring_all_reduce(Endpoint at, Reduction reduction, Whole array);
// Ranks swap all they have with one that is 2^k away and fold it in: ceil(log2 n) rounds, and two
// more where the number of ranks is no power of two. For what is short.
engine::Task doubling_all_reduce(Endpoint at, Reduction reduction, Whole array);
// Rabenseifner's: even parts are reduced by halving, then gathered by doubling. For what is long
// while there are many ranks.
engine::Task rabenseifner_all_reduce(Endpoint at, Reduction reduction, Whole array);

// --- Reduce -------------------------------------------------------------------------------------

// The root collects all arrays and reduces in rank order. For what is short.
engine::Task gathered_reduce(Endpoint at, Reduction reduction, Whole array, int root);
// Every rank reduces an even part in rank order, which the root gathers; stretch by stretch, so
// that a part needs little memory on its way.
engine::Task scattered_reduce(Endpoint at, Reduction reduction, Whole array, int root);
// Up a tree, in chunks; see tree_broadcast.
engine::Task tree_reduce(Endpoint at,
                         Reduction reduction,
                         Whole array,
                         int root,
                         TreeShape shape,
                         std::size_t chunk_bytes);
// Even parts are reduced by halving, and gathered by the root. For what is long.
engine::Task rabenseifner_reduce(Endpoint at, Reduction reduction, Whole array, int root);

// --- Scan ---------------------------------------------------------------------------------------
// Reduction::ranks is engine::combined; an `out` that is not there takes nothing.

// Every rank collects all arrays and reduces those of the first reduction.ranks, in rank order:
// ceil(log2 n) rounds. For what is short.
engine::Task gathered_scan(Endpoint at, Reduction reduction, Whole array);
// In chunks from each rank to the next one, which folds its own into them, in rank order. For what
// is long.
engine::Task chain_scan(Endpoint at, Reduction reduction, Whole array, engine::Prefix prefix);
// Hillis and Steele's: ranks hear from the one 2^k before them what is combined there, k growing:
// ceil(log2 n) rounds.
engine::Task doubling_scan(Endpoint at, Reduction reduction, Whole array, engine::Prefix prefix);

}  // namespace hocket::algorithm
