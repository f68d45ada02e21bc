#include "engine/call.h"

#include <fmt/format.h>

#include "engine/made_of_calls.h"

namespace hocket::engine {

std::size_t whole_bytes(const Signature& s, int ranks) noexcept {
  if (!row_of(s.kind).typed) return 0;  // its type is that of another call
  const bool parts = has_parts(s.kind) && !is_listed(s.kind);
  return bytes_of(s) * (parts ? static_cast<std::size_t>(ranks) : 1);
}

std::string describe(const Signature& s) {
  const Made made = made_of(s.kind, s.digest);
  const bool is_as_recorded = made == Made::kNot || made == Made::kExtremes;
  const KindRow& row = row_of(is_as_recorded ? s.kind : kind_made(s.digest));
  std::string text(row.name);
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
