// One call of one rank: what is agreed by all ranks, and this rank's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "engine/kinds.h"
#include "hocket/types.h"

namespace hocket::engine {

// Signature::digest of a v-form whose counts are not given: the call that asks for them.
inline constexpr std::uint64_t kAsksForCounts = 1;
// Signature::digest of arrays in this order of axes: of collectives that take whole arrays where
// it is Fortran's, of messages that differ in it on both sides.
constexpr std::uint64_t digest_of(MemoryOrder order) noexcept {
  return order == MemoryOrder::kFortran ? 0x666f727472616eU : 0x63U;  // "fortran", "c"
}

// What all ranks must agree in; the fingerprint is made of all of it, and an engine's score sees
// nothing else, so that all ranks choose alike. A value.
struct Signature {
  Kind kind = Kind::kNone;
  DType dtype = DType::kUInt8;
  ReduceOp op = ReduceOp::kSum;
  MemoryKind memory = MemoryKind::kHost;
  std::int32_t root = 0;
  // Elements: the whole array for broadcast, reduce, all_reduce, scan and exscan; one rank's share
  // for the other regular forms; of reduce_scatter_v and all_gather_v the parts' sum; else 0.
  std::uint64_t count = 0;
  // A hash of what else is agreed: the counts of a v-form, the ranks of a group, a block that is
  // freed, an order of axes. 0: nothing.
  std::uint64_t digest = 0;
  // 1: the arrays that peers have to reach lie in symmetric memory, so that they are read, and for
  // all_reduce written, where they are. 0: not so; peers never touch them.
  std::uint64_t symmetric = 0;

  bool operator==(const Signature&) const = default;
};

// "all_reduce sum float32[1024]", "broadcast int64[3] root 2".
std::string describe(const Signature& signature);

// Bytes of signature.count elements.
inline std::size_t bytes_of(const Signature& s) noexcept { return s.count * size_of(s.dtype); }

// The same of a rank's larger array: in some kinds it has a part for each rank.
std::size_t whole_bytes(const Signature& signature, int ranks) noexcept;

// Where each rank's part lies in an array, in bytes. A view; as long as the group has ranks.
struct PartsView {
  const std::size_t* bytes = nullptr;
  const std::size_t* offsets = nullptr;
};

// A call as engines get it: checked, and with aliasing made explicit. A value; the memory it points
// to lives until the call's Task has ended.
//
// In place is told by addresses alone: out == in (all_reduce, reduce, scan, exscan, broadcast,
// all_to_all, reduce_scatter), in == out + own part (all_gather, gather), out == in + own part
// (scatter's root, reduce_scatter). Arrays never overlap in another way. A broadcast's non-roots
// have in == nullptr; its root may have out == in. A reduce's or gather's non-roots and rank 0 of
// an exscan have out == nullptr, a scatter's non-roots in == nullptr.
struct Call {
  Signature signature;
  std::uint64_t sequence = 0;  // from 1, the same on all ranks
  // A hash of this signature and all before it: equal on all ranks unless they called different
  // things. It travels with the data where that is free; see Consistency.
  std::uint64_t fingerprint = 0;
  const void* in = nullptr;
  void* out = nullptr;
  // v-forms: the parts of `in` by destination (scatter_v's root, all_to_all_v, reduce_scatter_v)
  // and of `out` by source (gather_v's root, all_gather_v, all_to_all_v).
  PartsView in_parts;
  PartsView out_parts;
  // v-forms: bytes of this rank's own single part (gather_v's in, scatter_v's out, ...).
  std::size_t own_bytes = 0;
};

// One rank's part of an array, in bytes. A value.
struct Part {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};
// Of an array that has a part for each rank; `listed`: the call's parts of that array.
inline Part part_of(const Call& call, const PartsView& listed, int rank) noexcept {
  const auto r = static_cast<std::size_t>(rank);
  if (is_listed(call.signature.kind)) return {listed.offsets[r], listed.bytes[r]};
  const std::size_t share = bytes_of(call.signature);
  return {r * share, share};
}
// Of an array that has this rank's single part alone.
inline std::size_t own_bytes(const Call& call) noexcept {
  return is_listed(call.signature.kind) ? call.own_bytes : bytes_of(call.signature);
}

// What an engine asks when a peer's fingerprint differs from its own. Quick hashes also differ
// after a refused call, which is no mistake, so that the answer is looked up in the records.
class Consistency {
 public:
  virtual ~Consistency() = default;
  // Returns when `peer` and this rank have called the same, up to `sequence`; else throws.
  virtual void confirm(int peer, std::uint64_t sequence) = 0;
};

// What is known of a group when it is made, equal on all ranks but for `rank`. A value.
struct GroupFacts {
  int rank = 0;
  int size = 1;
  // The host number of each rank, from 0.
  std::span<const int> hosts;
  bool one_host = true;
  // The fewest processors that the ranks of one host may run on.
  int processors = 1;
};

}  // namespace hocket::engine
