#include "engine/call.h"

#include <fmt/format.h>

namespace hocket::engine {

std::size_t whole_bytes(const Signature& s, int ranks) noexcept {
  const bool parts = has_parts(s.kind) && !is_listed(s.kind);
  return bytes_of(s) * (parts ? static_cast<std::size_t>(ranks) : 1);
}

std::string describe(const Signature& s) {
  const KindRow& row = row_of(s.kind);
  std::string text(row.name);
  if (row.done == Done::kByCalls && !row.typed) return text;
  if (row.operates) text += fmt::format(" {}", name_of(s.op));
  if (row.typed) text += fmt::format(" {}[{}]", name_of(s.dtype), s.count);
  if (is_rooted(s.kind)) text += fmt::format(" root {}", s.root);
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
