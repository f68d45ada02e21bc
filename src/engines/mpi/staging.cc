#include "engines/mpi/staging.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <optional>

#include "engines/algorithm/partial.h"
#include "hocket/error.h"

namespace hocket::engines::mpi {

using algorithm::Partial;
using engine::Call;
using engine::GroupFacts;
using engine::Has;
using engine::Kind;
using engine::PartsView;
using engine::Signature;

namespace {

// Returns a count for MPI. Throws InvalidArgument if it is too large.
std::int32_t counted(std::size_t elements) {
  if (elements > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    throw InvalidArgument(fmt::format(
        "engine mpi: {} elements are more than MPI can count in a call; split the array, or use "
        "another engine",
        elements));
  }
  return static_cast<std::int32_t>(elements);
}

constexpr engine::KindTable<Collective> kCollectives{
    {Kind::kBarrier, Collective::kBarrier},
    {Kind::kBroadcast, Collective::kBroadcast},
    {Kind::kReduce, Collective::kReduce},
    {Kind::kAllReduce, Collective::kAllReduce},
    {Kind::kScan, Collective::kScan},
    {Kind::kExscan, Collective::kExscan},
    {Kind::kReduceScatter, Collective::kReduceScatter},
    {Kind::kReduceScatterV, Collective::kReduceScatter},
    {Kind::kAllGather, Collective::kAllGather},
    {Kind::kGather, Collective::kGather},
    {Kind::kScatter, Collective::kScatter},
    {Kind::kAllToAll, Collective::kAllToAll},
    {Kind::kAllGatherV, Collective::kAllGatherV},
    {Kind::kGatherV, Collective::kGatherV},
    {Kind::kScatterV, Collective::kScatterV},
    {Kind::kAllToAllV, Collective::kAllToAllV},
};
static_assert(kCollectives.kinds() == kCarries);

bool is_root(const Call& call, const GroupFacts& facts) {
  return facts.rank == call.signature.root;
}

// The contents of a rank's input or output array: nothing, one part, or the parts of all ranks.
enum class ArraySide { kNone, kOne, kAll };

ArraySide side_of(Has has) {
  switch (has) {
    case Has::kNothing:
      return ArraySide::kNone;
    case Has::kCount:
    case Has::kShare:
      return ArraySide::kOne;
    case Has::kAll:
      return ArraySide::kAll;
  }
  return ArraySide::kNone;
}

// A broadcast counts as having no input, because MPI's broadcast has only one array.
ArraySide in_side(const Call& call, const GroupFacts& facts) {
  const Kind kind = call.signature.kind;
  if (only_moves(kind) && !has_parts(kind)) return ArraySide::kNone;
  return side_of(engine::given(kind, is_root(call, facts)));
}

ArraySide out_side(const Call& call, const GroupFacts& facts) {
  return side_of(engine::taken(call.signature.kind, is_root(call, facts)));
}

// Returns the number of elements in this rank's own part.
std::size_t own_count(const Call& call) { return own_bytes(call) / size_of(call.signature.dtype); }

// Fills `counts` and `places` for parts that lie one after the other, in elements. Returns the
// total number of elements.
std::size_t list(const PartsView& parts,
                 std::size_t element,
                 int n,
                 std::vector<std::int32_t>& counts,
                 std::vector<std::int32_t>& places) {
  std::size_t total = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
    const std::size_t count = parts.bytes[i] / element;
    counts.push_back(counted(count));
    places.push_back(counted(total));
    total += count;
  }
  static_cast<void>(counted(total));
  return total;
}

// Returns the number of elements in the copy of one array. Fills `counts` and `places` if MPI needs
// them.
std::size_t elements_of(ArraySide side,
                        const Call& call,
                        const PartsView& parts,
                        const GroupFacts& facts,
                        std::vector<std::int32_t>& counts,
                        std::vector<std::int32_t>& places) {
  const std::size_t element = size_of(call.signature.dtype);
  if (side == ArraySide::kNone) return 0;
  if (side == ArraySide::kOne) return own_count(call);
  if (is_listed(call.signature.kind)) return list(parts, element, facts.size, counts, places);
  return call.signature.count * static_cast<std::size_t>(facts.size);
}

// Calls copy(offset, at, count) for each part: `offset` is the position in the array in bytes, `at`
// the position in the copy in elements, and `count` the number of elements.
template <typename Copy>
void for_each_part(ArraySide side,
                   const Call& call,
                   const PartsView& parts,
                   int n,
                   std::size_t elements,
                   const Copy& copy) {
  if (side != ArraySide::kAll || !is_listed(call.signature.kind)) {
    if (elements > 0) copy(std::size_t{0}, std::size_t{0}, elements);
    return;
  }
  const std::size_t element = size_of(call.signature.dtype);
  std::size_t at = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
    const std::size_t count = parts.bytes[i] / element;
    if (count > 0) copy(parts.offsets[i], at, count);
    at += count;
  }
}

// Returns the type of the partial results that MPI gets in place of an array's elements in a
// reduction. Returns nothing for other calls.
std::optional<Partial> partial_of(const Signature& s, const GroupFacts& facts) {
  if (!is_reduction(s.kind)) return std::nullopt;
  return Partial(s.dtype, s.op, engine::combined(s.kind, facts.rank, facts.size));
}

}  // namespace

void stage_in(Flight& flight, const Call& call, const GroupFacts& facts) {
  const Signature& s = call.signature;
  const auto partial = partial_of(s, facts);
  const std::size_t narrow = size_of(s.dtype);
  const std::size_t wide = partial ? partial->element() : narrow;
  const ArraySide in = in_side(call, facts);
  const ArraySide out = out_side(call, facts);
  const std::size_t in_count =
      elements_of(in, call, call.in_parts, facts, flight.in_counts, flight.in_places);
  const std::size_t out_count =
      elements_of(out, call, call.out_parts, facts, flight.out_counts, flight.out_places);
  flight.in = algorithm::Scratch(in_count * wide);
  // Rank 0 of an exscan has no output, but MPI still requires memory for it.
  const std::size_t room = is_prefix(s.kind) ? in_count : out_count;
  flight.out = algorithm::Scratch(room * wide);
  flight.out_count = out_count;
  const auto* from = static_cast<const std::byte*>(call.in);
  for_each_part(in,
                call,
                call.in_parts,
                facts.size,
                in_count,
                [&](std::size_t offset, std::size_t at, std::size_t count) {
                  std::byte* copy = flight.in.get() + at * wide;
                  if (partial) {
                    partial->load(copy, from + offset, count);
                  } else {
                    std::memcpy(copy, from + offset, count * narrow);
                  }
                });
  if (s.kind == Kind::kBroadcast && is_root(call, facts) && out_count > 0) {
    std::memcpy(flight.out.get(), from, out_count * narrow);
  }
  if (s.kind == Kind::kReduceScatter) {
    flight.in_counts.assign(static_cast<std::size_t>(facts.size), counted(s.count));
  }
  flight.call = {.kind = kCollectives[s.kind],
                 .dtype = static_cast<std::int32_t>(partial ? partial->dtype() : s.dtype),
                 .op = static_cast<std::int32_t>(partial ? partial->op() : s.op),
                 .root = s.root,
                 .in = flight.in.get(),
                 .out = flight.out.get(),
                 .count = counted(own_count(call)),
                 .in_counts = flight.in_counts.data(),
                 .in_places = flight.in_places.data(),
                 .out_counts = flight.out_counts.data(),
                 .out_places = flight.out_places.data()};
}

void stage_out(const Flight& flight, const Call& call, const GroupFacts& facts) {
  const Signature& s = call.signature;
  const auto partial = partial_of(s, facts);
  const std::size_t narrow = size_of(s.dtype);
  const std::size_t wide = partial ? partial->element() : narrow;
  auto* to = static_cast<std::byte*>(call.out);
  for_each_part(out_side(call, facts),
                call,
                call.out_parts,
                facts.size,
                flight.out_count,
                [&](std::size_t offset, std::size_t at, std::size_t count) {
                  const std::byte* copy = flight.out.get() + at * wide;
                  if (partial) {
                    partial->finish(to + offset, copy, count);
                  } else {
                    std::memcpy(to + offset, copy, count * narrow);
                  }
                });
}

}  // namespace hocket::engines::mpi
