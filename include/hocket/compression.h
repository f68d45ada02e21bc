// Reductions for slow networks: within hosts first, and between them in 8 bits an element.
//
// Arrays are worked on in place. Those in a GPU's memory go through the host's, once what their
// stream has is done; the result is there on return. What is refused on one rank of a communicator
// is refused on all of it.
#pragma once

#include <optional>
#include <string>

#include "hocket/array_view.h"
#include "hocket/communicator.h"
#include "hocket/types.h"

namespace hocket {

// Elements that share a range, counted from where each rank's share begins: ceil(count / ranks)
// elements that it adds up for all. Each block of a message has 8 bytes more than it has elements,
// so that a float32 array shrinks to 0.252 of its size.
inline constexpr std::size_t kCompressionBlock = 1024;

// A sum (kSum) or mean (kAvg) of floats over all ranks, of which 8 bits an element travel, twice:
// each rank gets a share of everybody's array, adds it up in float32, and sends the sum to all. The
// result is the same to the last bit on every rank.
//
// The error. Each element is replaced by the nearest of 256 values between the least and the
// greatest of its block. With R the sum over the ranks of greatest - least of the block that the
// element lies in on that rank, a sum is off by at most R / 254, a mean by that divided by the
// number of ranks, besides the rounding of float32 and of the array's own type. Blocks whose
// elements are all equal are exact. A block with an infinity or a NaN becomes NaN.
//
// float16, bfloat16, float32, float64 (which is taken to float32); others are refused.
void compressed_all_reduce(Communicator& comm, ArrayView inout, const ReduceOptions& options = {});

enum class BetweenNodes { kExact, kCompressed };

struct HierarchicalOptions {
  ReduceOp op = ReduceOp::kSum;
  BetweenNodes between = BetweenNodes::kExact;
  std::optional<Duration> deadline = {};  // of each of the steps
  std::optional<StreamRef> stream = {};   // that an array in a GPU's memory belongs to
};

// An all_reduce in three steps: within each node to its first rank, between those, and back. Every
// rank counts alike in a mean, however many a node has. Floats of 16 and 8 bits are added in
// float32 and rounded once. kCompressed has the bound above, with nodes in place of ranks, and
// takes kSum and kAvg of what compressed_all_reduce takes.
//
// `within`: the ranks of this node. `between`: the first ranks of all nodes; matters on those
// alone, and may be a communicator without members elsewhere. Any partition will do for nodes.
void hierarchical_all_reduce(Communicator& within,
                             Communicator& between,
                             ArrayView inout,
                             const HierarchicalOptions& options = {});
// By hosts: intra_node() and inter_node(), which are made at the first call.
void hierarchical_all_reduce(Communicator& comm,
                             ArrayView inout,
                             const HierarchicalOptions& options = {});
// Takes part in the next such call of `comm` by refusing it, as Communicator::refuse does in
// others: throws InvalidArgument here and, at once, on the other ranks.
void refuse_hierarchical_all_reduce(Communicator& comm, const std::string& reason);

}  // namespace hocket
