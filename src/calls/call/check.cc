#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>

#include "calls/call/membership.h"
#include "calls/call/request.h"
#include "foundation/base/hash.h"
#include "hocket/error.h"

namespace hocket::call {

using engine::Call;
using engine::Has;
using engine::is_listed;
using engine::is_reduction;
using engine::is_rooted;
using engine::Kind;

namespace {

[[noreturn]] void refuse(std::string what) { throw InvalidArgument(std::move(what)); }

// Returns the kind of memory of both arrays; an empty array does not count. Throws if they differ.
MemoryKind common_memory(ConstArrayView in, ArrayView out) {
  const bool has_in = in.data() != nullptr || in.count() != 0;
  const bool has_out = out.data() != nullptr || out.count() != 0;
  if (has_in && has_out && in.memory() != out.memory()) {
    refuse(fmt::format("{} lies in a GPU's memory and {} in the host's; they must lie in one",
                       in.memory() == MemoryKind::kCuda ? "in" : "out",
                       in.memory() == MemoryKind::kCuda ? "out" : "in"));
  }
  if (has_in) return in.memory();
  return has_out || in.memory() == MemoryKind::kHost ? out.memory() : in.memory();
}
std::string too_many(std::string_view name, std::size_t count) {
  return fmt::format("{} has {} elements, more than any memory holds", name, count);
}
void require_same_dtype(ConstArrayView in, ArrayView out) {
  if (in.dtype() != out.dtype()) {
    refuse(fmt::format("in is {} and out is {}; they must have one dtype",
                       name_of(in.dtype()),
                       name_of(out.dtype())));
  }
}
// Throws unless the counts are equal. `why` returns the explanation in brackets; it is called only
// on an error.
template <typename Why>
void require_count(const char* name, std::size_t found, std::size_t expected, const Why& why) {
  if (found != expected) {
    refuse(fmt::format("{} has {} elements, expected {} ({})", name, found, expected, why()));
  }
}
constexpr auto kAsIn = [] { return "as many as in"; };
// Returns the number of elements of all ranks' shares together. Throws if it overflows.
std::size_t all_shares(const char* name, std::size_t share, const RankAndSize& place) {
  const auto n = static_cast<std::size_t>(place.size);
  if (share > kMostBytes / n) refuse(too_many(name, share));
  return share * n;
}
std::size_t share_of(const char* name, std::size_t count, int size) {
  const auto n = static_cast<std::size_t>(size);
  if (count % n != 0) {
    refuse(fmt::format(
        "{} has {} elements, which do not divide among {} ranks; use the _v form", name, count, n));
  }
  return count / n;
}

// Throws if the arrays overlap, unless they are the same array and the call works in place.
void require_apart(const void* in,
                   std::size_t in_bytes,
                   const void* out,
                   std::size_t out_bytes,
                   bool exact_is_fine) {
  const auto a = reinterpret_cast<std::uintptr_t>(in);
  const auto b = reinterpret_cast<std::uintptr_t>(out);
  if (in_bytes == 0 || out_bytes == 0 || a + in_bytes <= b || b + out_bytes <= a) return;
  if (exact_is_fine) return;
  refuse(
      "in and out overlap without being the same array, which no call can do in place; use one "
      "array for both, or two apart");
}

// Calls `each(address, bytes)` for each part of an array, or once for an array without parts.
template <typename Each>
void for_each_part(
    const void* array, std::size_t bytes, const engine::PartsView& parts, int n, const Each& each) {
  if (parts.bytes == nullptr) return each(array, bytes);
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) {
    each(static_cast<const std::byte*>(array) + parts.offsets[i], parts.bytes[i]);
  }
}

// Throws if parts of the two arrays overlap. The gaps of one array may hold parts of the other.
void require_parts_apart(const Request& r, const Call& call, int n) {
  const auto in = reinterpret_cast<std::uintptr_t>(r.in.data());
  const auto out = reinterpret_cast<std::uintptr_t>(r.out.data());
  if (in + r.in.bytes() <= out || out + r.out.bytes() <= in) return;
  for_each_part(r.in.data(), r.in.bytes(), call.in_parts, n, [&](const void* a, std::size_t size) {
    for_each_part(
        r.out.data(), r.out.bytes(), call.out_parts, n, [&](const void* b, std::size_t room) {
          require_apart(a, size, b, room, false);
        });
  });
}

// Throws if the output overlaps input parts that belong to other ranks. Peers read those parts
// while the output is written.
void require_others_apart(const Request& r, const engine::PartsView& parts, const RankAndSize& at) {
  const auto* in = static_cast<const std::byte*>(r.in.data());
  for (int i = 0; i < at.size; ++i) {
    if (i == at.rank) continue;
    require_apart(in + parts.offsets[i], parts.bytes[i], r.out.data(), r.out.bytes(), false);
  }
}

// The arrays of a call without explicit parts, in place or not. An array that this rank does not
// have is empty.
struct CheckedArrays {
  ConstArrayView in;
  ArrayView out;
  std::size_t share = 0;  // signature.count
  bool may_coincide = false;
};

ArrayView none(DType dtype) { return ArrayView(nullptr, 0, dtype); }

CheckedArrays arrays_to_reduce(const Request& r, bool takes) {
  CheckedArrays a{.in = r.in_place ? ConstArrayView(r.out) : r.in, .out = r.out};
  a.share = a.in.count();
  if (takes) {
    require_count("out", a.out.count(), a.share, kAsIn);
  } else {
    // Rank 0 of an exscan needs no output. If it passes an output, that must still match other
    // ranks' outputs.
    const bool is_prefix = engine::row_of(r.kind).prefix == engine::Prefix::kExclusive;
    if (is_prefix && a.out.count() > 0) {
      require_same_dtype(a.in, a.out);
      require_count("out", a.out.count(), a.share, kAsIn);
    }
    a.out = none(a.in.dtype());
  }
  a.may_coincide = a.in.data() == a.out.data();
  return a;
}

CheckedArrays arrays_to_broadcast(const Request& r, bool gives) {
  CheckedArrays a{.in = r.in_place ? ConstArrayView(r.out) : r.in, .out = r.out};
  a.share = a.out.count();
  if (gives) {
    require_count("out", a.share, a.in.count(), kAsIn);
  } else {
    a.in = none(a.out.dtype());
  }
  a.may_coincide = a.in.data() == a.out.data();
  return a;
}

CheckedArrays arrays_to_gather(const Request& r, const RankAndSize& place, bool takes) {
  const auto rank = static_cast<std::size_t>(place.rank);
  CheckedArrays a{.in = r.in, .out = r.out};
  if (r.in_place && takes) {
    a.share = share_of("the array", r.out.count(), place.size);
    a.in = r.out.slice(rank * a.share, a.share);
  } else {
    if (r.in_place) a.in = r.out;
    a.share = a.in.count();
  }
  if (takes) {
    require_count("out", a.out.count(), all_shares("in", a.share, place), [&] {
      return fmt::format("{} ranks times in's {}", place.size, a.share);
    });
    a.may_coincide = a.share != 0 && a.in.data() == a.out.slice(rank * a.share, a.share).data();
  } else {
    a.out = none(a.in.dtype());
  }
  return a;
}

CheckedArrays arrays_to_scatter(const Request& r, const RankAndSize& place, bool gives) {
  const auto rank = static_cast<std::size_t>(place.rank);
  CheckedArrays a{.in = r.in, .out = r.out};
  if (r.in_place && gives) {
    a.share = share_of("the array", r.out.count(), place.size);
    a.in = r.out;
    a.out = r.out.slice(rank * a.share, a.share);
    a.may_coincide = true;
    return a;
  }
  a.share = a.out.count();
  if (gives) {
    require_count("in", a.in.count(), all_shares("out", a.share, place), [&] {
      return fmt::format("{} ranks times out's {}", place.size, a.share);
    });
    a.may_coincide = a.share != 0 && a.in.slice(rank * a.share, a.share).data() == a.out.data();
  } else {
    a.in = none(a.out.dtype());
  }
  return a;
}

CheckedArrays arrays_to_reduce_scatter(const Request& r, const RankAndSize& place) {
  CheckedArrays a{.in = r.in, .out = r.out};
  if (r.in_place) {
    a.in = r.out;
    a.share = share_of("the array", r.out.count(), place.size);
    a.out = r.out.slice(0, a.share);
  } else {
    a.share = a.out.count();
    require_count("in", a.in.count(), all_shares("out", a.share, place), [&] {
      return fmt::format("{} ranks times out's {}", place.size, a.share);
    });
  }
  // The output may also be this rank's own part of the input, which no other rank reads.
  const auto rank = static_cast<std::size_t>(place.rank);
  a.may_coincide = a.in.data() == a.out.data() ||
                   (a.share != 0 && a.in.slice(rank * a.share, a.share).data() == a.out.data());
  return a;
}

CheckedArrays arrays_to_swap(const Request& r, const RankAndSize& place) {
  CheckedArrays a{.in = r.in_place ? ConstArrayView(r.out) : r.in, .out = r.out};
  a.share = share_of("in", a.in.count(), place.size);
  require_count("out", a.out.count(), a.in.count(), kAsIn);
  a.may_coincide = a.in.data() == a.out.data();
  return a;
}

CheckedArrays arrays_of(const Request& r, const RankAndSize& place) {
  const bool at_root = place.rank == r.root;
  const bool gives = engine::given(r.kind, at_root) != Has::kNothing;
  const bool takes = engine::taken(r.kind, at_root) != Has::kNothing;
  const engine::KindRow& row = engine::row_of(r.kind);
  if (engine::swaps_parts(r.kind)) return arrays_to_swap(r, place);
  if (row.takes == Has::kAll) return arrays_to_gather(r, place, takes);
  if (row.gives == Has::kAll) {
    return row.reduces ? arrays_to_reduce_scatter(r, place) : arrays_to_scatter(r, place, gives);
  }
  return row.reduces ? arrays_to_reduce(r, takes) : arrays_to_broadcast(r, gives);
}

// Sets signature.count, in and out of a call without parts.
void lay_out(const Request& r, const RankAndSize& place, Call& call) {
  const CheckedArrays a = arrays_of(r, place);
  require_same_dtype(a.in, a.out);
  require_array(a.in, r.in_place ? "inout" : "in");
  require_array(a.out, r.in_place ? "inout" : "out");
  call.signature.memory = common_memory(r.in_place ? ConstArrayView(r.out) : r.in, r.out);
  require_apart(a.in.data(), a.in.bytes(), a.out.data(), a.out.bytes(), a.may_coincide);
  call.signature.dtype = a.out.dtype();
  call.signature.count = a.share;
  // A one-dimensional array counts as being in C order.
  const MemoryOrder order = r.in_place || a.in.data() == nullptr ? r.out.order() : r.in.order();
  if (order == MemoryOrder::kFortran && r.digest == 0 && engine::takes_whole_arrays(r.kind)) {
    call.signature.digest = engine::digest_of(order);
  }
  call.in = a.in.data();
  call.out = a.out.data();
}

std::uint64_t hash_counts(std::span<const std::size_t> counts) {
  std::uint64_t hash = base::kHashSeed;
  for (const std::size_t count : counts) hash = base::mix(hash, count);
  return hash;
}

// Checks parts against their array, and stores their sizes and offsets in bytes. `name` is the
// array's name.
engine::PartsView place_parts(const Parts& parts,
                              std::size_t array_count,
                              DType dtype,
                              int size,
                              const char* name,
                              std::vector<std::size_t>& positions) {
  const auto n = static_cast<std::size_t>(size);
  require_count("counts", parts.counts.size(), n, [] { return "one a rank"; });
  if (!parts.displacements.empty()) {
    require_count("displacements", parts.displacements.size(), n, [] { return "one a rank"; });
  }
  const std::size_t begin = positions.size();
  positions.resize(begin + 2 * n);
  std::size_t packed = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t at = parts.displacements.empty() ? packed : parts.displacements[i];
    if (parts.counts[i] > array_count || at > array_count - parts.counts[i]) {
      refuse(fmt::format("the part of rank {} is elements [{}, {}) of {}, which has {}",
                         i,
                         at,
                         at + parts.counts[i],
                         name,
                         array_count));
    }
    positions[begin + i] = parts.counts[i] * size_of(dtype);
    positions[begin + n + i] = at * size_of(dtype);
    packed += parts.counts[i];
  }
  // Without displacements, each element must be in a part. An element in no part would not be sent,
  // or would keep its old value.
  if (parts.displacements.empty() && packed != array_count) {
    refuse(
        fmt::format("{} has {} elements and the counts of all ranks together make {}; give the "
                    "part of it that is meant, or displacements",
                    name,
                    array_count,
                    packed));
  }
  return {positions.data() + begin, positions.data() + begin + n};
}

// Throws if output parts overlap, because the result would depend on which part is written last.
void require_places_apart(const engine::PartsView& parts, int size) {
  std::vector<int> order;
  for (int i = 0; i < size; ++i) {
    if (parts.bytes[i] > 0) order.push_back(i);
  }
  std::ranges::sort(order, {}, [&](int i) { return parts.offsets[i]; });
  for (std::size_t k = 1; k < order.size(); ++k) {
    const int a = order[k - 1], b = order[k];
    if (parts.offsets[a] + parts.bytes[a] <= parts.offsets[b]) continue;
    refuse(fmt::format("the parts of ranks {} and {} overlap in out; give each a place of its own",
                       std::min(a, b),
                       std::max(a, b)));
  }
}

// Moves the array's beginning to its first part that is not empty. If there is none, the beginning
// is null. `positions` is the memory that holds the parts' bytes and offsets.
void begin_at_first_part(const void*& array,
                         const engine::PartsView& parts,
                         int size,
                         std::vector<std::size_t>& positions) {
  std::size_t* const offsets = positions.data() + (parts.offsets - positions.data());
  std::size_t first = std::numeric_limits<std::size_t>::max();
  for (int i = 0; i < size; ++i) {
    if (parts.bytes[i] > 0) first = std::min(first, offsets[i]);
  }
  for (int i = 0; i < size; ++i) offsets[i] = parts.bytes[i] > 0 ? offsets[i] - first : 0;
  const bool has_any = first != std::numeric_limits<std::size_t>::max();
  array = has_any ? static_cast<const std::byte*>(array) + first : nullptr;
}

void lay_out_parts(const Request& r, const RankAndSize& place, Call& call, CallStorage& storage) {
  const auto rank = static_cast<std::size_t>(place.rank);
  const bool at_root = place.rank == r.root;
  const engine::KindRow& row = engine::row_of(r.kind);
  const Has gives = engine::given(r.kind, at_root);
  const Has takes = engine::taken(r.kind, at_root);
  const DType dtype = row.flow == engine::Flow::kFromRoot ? r.out.dtype() : r.in.dtype();
  std::vector<std::size_t>& positions = storage.positions;
  positions.reserve(4 * static_cast<std::size_t>(place.size));  // the parts' views must stay valid
  if (gives == Has::kAll) {
    call.in_parts = place_parts(r.in_parts, r.in.count(), dtype, place.size, "in", positions);
  }
  if (takes == Has::kAll) {
    call.out_parts = place_parts(r.out_parts, r.out.count(), dtype, place.size, "out", positions);
    if (!r.out_parts.displacements.empty()) require_places_apart(call.out_parts, place.size);
  }
  call.signature.dtype = dtype;
  call.in = r.in.data();
  call.out = r.out.data();
  const bool wants_in = gives != Has::kNothing, wants_out = takes != Has::kNothing;
  bool may_coincide = false;
  if (engine::swaps_parts(r.kind)) {
    require_count("out's own part", r.out_parts.counts[rank], r.in_parts.counts[rank], [] {
      return "as many as in's own part";
    });
    may_coincide = r.in.data() == r.out.data() &&
                   std::ranges::equal(r.in_parts.counts, r.out_parts.counts) &&
                   std::ranges::equal(r.in_parts.displacements, r.out_parts.displacements);
  } else {
    // One array holds this rank's own part. The other array, if this rank has it, holds the parts
    // of all ranks.
    const bool own_is_in = row.gives == Has::kShare;
    const ConstArrayView own = own_is_in ? r.in : ConstArrayView(r.out);
    const ConstArrayView other = own_is_in ? ConstArrayView(r.out) : r.in;
    const std::span<const std::size_t> counts = own_is_in ? r.out_parts.counts : r.in_parts.counts;
    const engine::PartsView& parts = own_is_in ? call.out_parts : call.in_parts;
    call.own_bytes = own.bytes();
    if (parts.bytes != nullptr) {
      require_count(
          own_is_in ? "in" : "out", own.count(), counts[rank], [] { return "this rank's part"; });
      may_coincide =
          own.data() == static_cast<const std::byte*>(other.data()) + parts.offsets[rank];
      if (may_coincide && row.reduces) require_others_apart(r, parts, place);
    }
    if (engine::counts_parts(r.kind)) {
      call.signature.count = std::accumulate(counts.begin(), counts.end(), std::size_t{0});
      call.signature.digest = hash_counts(counts);
    }
  }
  if (!wants_in) call.in = nullptr;
  if (!wants_out) call.out = nullptr;
  if (wants_in && wants_out) require_same_dtype(r.in, r.out);
  if (wants_in) require_array(r.in, "in");
  if (wants_out) require_array(r.out, "out");
  call.signature.memory = common_memory(r.in, r.out);
  if (!wants_in || !wants_out || may_coincide) return;
  require_parts_apart(r, call, place.size);
  // Engines treat equal addresses as an exchange in place, and this call is not in place. So both
  // addresses move to the first part that is not empty.
  if (!engine::swaps_parts(r.kind) || call.in != call.out) return;
  const void* out = call.out;
  begin_at_first_part(call.in, call.in_parts, place.size, positions);
  begin_at_first_part(out, call.out_parts, place.size, positions);
  call.out = const_cast<void*>(out);
}

}  // namespace

std::string fault_of(ConstArrayView array, std::string_view name) {
  const std::size_t element = size_of(array.dtype());
  if (element == 0) return fmt::format("the dtype of {} is none of hocket::DType", name);
  if (array.memory() > MemoryKind::kCuda) {
    return fmt::format("the memory of {} is none of hocket::MemoryKind", name);
  }
  if (array.count() > kMostBytes / element) return too_many(name, array.count());
  if (array.data() != nullptr || array.count() == 0) return {};
  return fmt::format("{} has {} elements at a null address", name, array.count());
}

Call check(const Request& r, const RankAndSize& place, CallStorage& storage) {
  Call call;
  call.signature.kind = r.kind;
  call.signature.digest = r.digest;
  if (r.kind == Kind::kBarrier) {
    if (r.stream) call.signature.memory = MemoryKind::kCuda;
    return call;
  }
  if (is_rooted(r.kind)) {
    require_rank("root", r.root, place.size);
    call.signature.root = r.root;
  }
  if (is_listed(r.kind)) {
    lay_out_parts(r, place, call, storage);
  } else {
    lay_out(r, place, call);
  }
  if (is_reduction(r.kind)) {
    call.signature.op = r.op;
    if (!is_defined(r.op, call.signature.dtype)) {
      refuse(fmt::format(
          "op {} has no meaning on {} elements", name_of(r.op), name_of(call.signature.dtype)));
    }
  }
  return call;
}

}  // namespace hocket::call
