// One call of one rank: the facts that all ranks agree on, and this rank's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/kinds.h"
#include "hocket/types.h"

namespace hocket::engine {

// Signature::digest of a part of a composed call in which all ranks meet: no rank leaves it before
// all ranks have entered it. In this part each rank sends a number to the others, mostly a count of
// a v-form.
inline constexpr std::uint64_t kMeetsAll = 1;
// Returns the Signature::digest for an order of axes. Collectives on whole arrays use it if the
// order is Fortran. Messages use it if the sender's order differs from the receiver's.
constexpr std::uint64_t digest_of(MemoryOrder order) noexcept {
  return order == MemoryOrder::kFortran ? 0x666f727472616eU : 0x63U;  // "fortran", "c"
}

// The facts of a call that all ranks must agree on. The fingerprint covers all of them. An engine's
// score sees nothing else, so all ranks choose the same engine. A value.
struct Signature {
  Kind kind = Kind::kNone;
  DType dtype = DType::kUInt8;
  ReduceOp op = ReduceOp::kSum;
  MemoryKind memory = MemoryKind::kHost;
  std::int32_t root = 0;
  // Number of elements:
  //  - broadcast, reduce, all_reduce, scan, exscan: of the whole array;
  //  - the other regular kinds: of one rank's share;
  //  - reduce_scatter_v, all_gather_v: the sum of all parts;
  //  - all other kinds: 0.
  std::uint64_t count = 0;
  // A hash of further facts that all ranks must agree on, such as the counts of a v-form, the ranks
  // of a group, or an order of axes. 0: none.
  std::uint64_t digest = 0;
  // 1: the arrays that peers access lie in symmetric memory. Peers read them directly, and for
  // all_reduce also write them. 0: peers do not access this rank's arrays.
  std::uint64_t symmetric = 0;

  bool operator==(const Signature&) const = default;
};

// Formats a signature for people, such as "all_reduce sum float32[1024]" or "broadcast int64[3]
// root 2".
std::string describe(const Signature& signature);

// Returns the name of the call that the program made. If this is a part of a composed call, it is
// the name of the composed call.
std::string_view name_of(const Signature& signature) noexcept;

// Returns the bytes of signature.count elements.
inline std::size_t bytes_of(const Signature& s) noexcept { return s.count * size_of(s.dtype); }

// Returns the bytes of the larger of a rank's two arrays, input and output. In kinds such as
// all_gather, this array has a share for each rank.
std::size_t whole_bytes(const Signature& signature, int ranks) noexcept;

// The size and position of each rank's part of an array, in bytes. Both arrays have an entry for
// each rank. This view does not own them.
struct PartsView {
  const std::size_t* bytes = nullptr;
  const std::size_t* offsets = nullptr;
};

// A call as engines get it: checked, and with explicit aliasing. A value. The memory that it points
// to lives until the call's Task has ended.
//
// Addresses alone show that a call works in place:
//   out == in              all_reduce, reduce, scan, exscan, broadcast, all_to_all, reduce_scatter
//   in == out + own part   all_gather, gather
//   out == in + own part   scatter's root, reduce_scatter
// Arrays never overlap in another way. `in` is null for ranks other than the root of a broadcast or
// scatter; a broadcast's root may have out == in. `out` is null for ranks other than the root of a
// reduce or gather, and for rank 0 of an exscan.
struct Call {
  Signature signature;
  std::uint64_t sequence = 0;  // the number of the call, from 1, equal on all ranks
  // A hash of this signature and of all earlier signatures of the group. It is equal on all ranks
  // unless they made different calls. An engine sends it with the data if that costs nothing; see
  // Consistency.
  std::uint64_t fingerprint = 0;
  const void* in = nullptr;
  void* out = nullptr;
  // For v-forms: the parts of `in` by destination (scatter_v's root, all_to_all_v,
  // reduce_scatter_v), and of `out` by source (gather_v's root, all_gather_v, all_to_all_v).
  PartsView in_parts;
  PartsView out_parts;
  // For v-forms: bytes of this rank's own part (gather_v's in, scatter_v's out, ...).
  std::size_t own_bytes = 0;
};

// One rank's part of an array, in bytes. A value.
struct Part {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};
// Returns one part of an array that has a part for each rank. `listed` has the parts of a v-form.
inline Part part_of(const Call& call, const PartsView& listed, int rank) noexcept {
  const auto r = static_cast<std::size_t>(rank);
  if (is_listed(call.signature.kind)) return {listed.offsets[r], listed.bytes[r]};
  const std::size_t share = bytes_of(call.signature);
  return {r * share, share};
}
// Returns the bytes of an array that has only this rank's part.
inline std::size_t own_bytes(const Call& call) noexcept {
  return is_listed(call.signature.kind) ? call.own_bytes : bytes_of(call.signature);
}

// Finds out whether two ranks made the same calls. An engine asks it when a peer's fingerprint
// differs from its own. A difference alone is no proof, because a refused call also makes
// fingerprints differ. So the ranks' records decide.
class Consistency {
 public:
  virtual ~Consistency() = default;
  // Returns if `peer` and this rank made the same calls up to `sequence`. Otherwise throws.
  virtual void confirm(int peer, std::uint64_t sequence) = 0;
};

// The facts of a group, equal on all its ranks except `rank`. A value.
struct GroupFacts {
  int rank = 0;
  int size = 1;
  // The host number of each rank, from 0.
  std::span<const int> hosts;
  bool one_host = true;
};

}  // namespace hocket::engine
