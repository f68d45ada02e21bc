#include "engine/call.h"

#include <fmt/format.h>

#include "engine/made_of_calls.h"

namespace hocket::engine {

std::size_t whole_bytes(const Signature& s, int ranks) noexcept {
  if (!row_of(s.kind).typed) return 0;  // such a call has no elements
  const bool parts = has_parts(s.kind) && !is_listed(s.kind);
  return bytes_of(s) * (parts ? static_cast<std::size_t>(ranks) : 1);
}

namespace {

// Composed calls whose parts work on the program's own arrays. Texts about a part then show its
// element type and count.
constexpr KindSet kOfArrays{Kind::kHierarchicalAllReduce,
                            Kind::kAllReduceCoalesced,
                            Kind::kBroadcastCoalesced,
                            Kind::kAllGatherCoalesced,
                            Kind::kReduceScatterCoalesced};

const KindRow& row_of_whole(const Signature& s, Made made) noexcept {
  const bool is_as_recorded = made == Made::kNot || made == Made::kExtremes;
  return row_of(is_as_recorded ? s.kind : kind_made(s.digest));
}

}  // namespace

std::string_view name_of(const Signature& s) noexcept {
  const Made made = made_of(s.kind, s.digest);
  if (made == Made::kExtremes)
    return name_of(s.op == ReduceOp::kMin ? Kind::kArgmin : Kind::kArgmax);
  return row_of_whole(s, made).name;
}

std::string describe(const Signature& s) {
  const Made made = made_of(s.kind, s.digest);
  const KindRow& row = row_of_whole(s, made);
  std::string text(row.name);
  if (made == Made::kPart || (is_listed(s.kind) && s.digest == kMeetsAll)) {
    if (kOfArrays.has(row.kind)) return fmt::format("{} {}[{}]", text, name_of(s.dtype), s.count);
    return is_rooted(s.kind) ? fmt::format("{} root {}", text, s.root) : text;
  }
  if (row.done == Done::kByCalls && !row.typed) return text;
  if (made == Made::kExtremes) {
    text = fmt::format("arg{}", name_of(s.op));
  } else if (row.operates) {
    text += made == Made::kByOperator ? " by an operator" : fmt::format(" {}", name_of(s.op));
  }
  if (row.typed) text += fmt::format(" {}[{}]", name_of(s.dtype), s.count);
  if (is_rooted(row.kind)) text += fmt::format(" root {}", s.root);
  if (s.memory == MemoryKind::kCuda) text += " on GPUs";
  if (s.kind == Kind::kNvshmemAllocate) text += ", NVSHMEM's heap";
  if (takes_whole_arrays(s.kind)) {
    if (s.digest == digest_of(MemoryOrder::kFortran)) text += " in Fortran order";
    if (s.digest == digest_of(MemoryOrder::kC)) text += " in C order";
  }
  if (s.symmetric != 0) text += " (symmetric)";
  return text;
}

}  // namespace hocket::engine
