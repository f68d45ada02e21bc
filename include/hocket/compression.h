// Reductions for slow networks: first within hosts, then between hosts with 8 bits for each
// element.
//
// Calls work in place. An array in a GPU's memory is copied to the host after the work of its
// stream. Its result is complete when the call returns. An argument that one rank refuses is
// refused on all ranks of the communicator. Every call throws what Communicator::all_reduce throws.
#pragma once

#include <optional>
#include <string>

#include "hocket/array_view.h"
#include "hocket/communicator.h"
#include "hocket/types.h"

namespace hocket {

// Number of elements that share one range of values. Blocks are counted from the start of each
// rank's share, which has ceil(count / ranks) elements. Each block of a message takes 8 bytes for
// its range and one byte for each element. So a float32 array shrinks to 0.252 of its size.
inline constexpr std::size_t kCompressionBlock = 1024;

// Computes the sum (kSum) or mean (kAvg) of floats over all ranks. Each rank receives one share of
// every array, adds it in float32, and sends the sum to all. Both transfers use 8 bits for each
// element. The result has the same bits on every rank.
//
// Error bound: each element is replaced by the nearest of 256 values between the minimum and
// maximum of its block. For one element, R is the sum over the ranks of (maximum - minimum) of its
// block on that rank. A sum differs from the exact one by at most R / 254, and a mean by that bound
// divided by the number of ranks. The rounding of float32 and of the array's type comes on top.
// Blocks of equal elements are exact. A block with an infinity or a NaN becomes NaN.
// @param comm The communicator.
// @param inout The array: float16, bfloat16, float32, or float64 (which is converted to float32).
// @param options `op` is kSum or kAvg.
// @throws InvalidArgument for other types and operators.
void compressed_all_reduce(Communicator& comm, ArrayView inout, const ReduceOptions& options = {});

enum class BetweenNodes { kExact, kCompressed };

struct HierarchicalOptions {
  ReduceOp op = ReduceOp::kSum;
  BetweenNodes between = BetweenNodes::kExact;
  std::optional<Duration> deadline = {};  // for each of the steps
  std::optional<StreamRef> stream = {};   // the stream that an array in a GPU's memory belongs to
};

// Computes an all_reduce in three steps: reduce to the first rank of each node, all_reduce between
// these first ranks, and broadcast within each node. A mean weighs every rank equally, however many
// ranks a node has. Floats of 16 and 8 bits are added in float32 and rounded once. With kCompressed
// the types, operators and error bound of compressed_all_reduce apply, with nodes in place of
// ranks.
// @param within The ranks of this node. Any partition of the ranks may serve as nodes.
// @param between The first ranks of all nodes. It is used on those ranks alone, and may be a
//   communicator without members elsewhere.
// @param inout The array.
// @param options See HierarchicalOptions.
void hierarchical_all_reduce(Communicator& within,
                             Communicator& between,
                             ArrayView inout,
                             const HierarchicalOptions& options = {});
// Does the same with hosts as nodes. It uses the communicators comm.intra_node() and
// comm.inter_node(), which the first call makes.
void hierarchical_all_reduce(Communicator& comm,
                             ArrayView inout,
                             const HierarchicalOptions& options = {});
// Refuses the next hierarchical_all_reduce of `comm` for `reason`, instead of making it. Throws
// InvalidArgument here and, without delay, on the other ranks. See Communicator::refuse.
void refuse_hierarchical_all_reduce(Communicator& comm, const std::string& reason);

}  // namespace hocket
