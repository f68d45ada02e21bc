// Selects calls that use one copy by the kernel (process_vm_readv) instead of two copies through
// shared memory. `exposes_reduced` decides for reductions. `copies_by_both_ends` decides for
// gather, scatter, and a broadcast between two ranks. `exposes_parts` and `exposes_whole` decide
// for the remaining moves. All ranks make the same choice where they must act alike.
//
// Measured with 2 to 32 ranks, each on a core of its own; docs/notes/performance.md has the
// figures.
#include "engines/shm/collectives.h"
#include "engines/shm/exchange.h"
#include "foundation/core/claim.h"

namespace hocket::engines::shm {

using base::SingleCopy;
using engine::Kind;

namespace {

constexpr std::size_t kKiB = std::size_t{1} << 10;

// Returns whether one copy may be faster on this machine. If readers can claim cache lines, two
// copies are faster: see docs/decisions/002-claimed-lines.md.
bool may_be_quicker() noexcept { return !core::can_claim(); }

// Returns whether the parts are long enough for one copy by the kernel. The kernel looks up every
// page of an array for each reader, and each part costs a system call. From these lengths on, both
// together cost less than a second copy. `part` is the mean length of all parts in bytes, `total`
// their sum.
bool is_long_enough(Kind kind, std::size_t part, std::size_t total, int size) noexcept {
  const bool is_rooted = engine::is_rooted(kind);
  if (size == 2) return part >= (is_rooted ? 48 : 24) * kKiB;
  if (is_rooted) return part >= 32 * kKiB || total >= 512 * kKiB;
  return part >= 16 * kKiB;
}

// Returns the bytes of an array from which a reduction of exposed arrays is faster than one through
// chunks. Between two ranks chunks are always faster, because two ranks meet quickly.
std::size_t reduced_from(Kind kind, int size) noexcept {
  if (size == 2) return ~std::size_t{0};
  if (kind == Kind::kReduce) return (size <= 8 ? 512 : 256) * kKiB;
  return size <= (kind == Kind::kAllReduce ? 4 : 8) ? 512 * kKiB : 1024 * kKiB;
}

// Returns the bytes of all parts together from which both ends of each transfer copy.
std::size_t shared_from(Kind kind, int size) noexcept {
  if (kind == Kind::kScatter && size > 2 && size <= 8) return 64 * kKiB;
  return (kind == Kind::kBroadcast ? 64 : 128) * kKiB;
}

}  // namespace

bool copies_by_both_ends(const ShmGroup& group, const engine::Signature& signature) noexcept {
  const Kind kind = signature.kind;
  // In v-forms each rank knows only the size of its own part, so the ranks could not choose alike.
  // If several ranks read the same array, chunks are faster.
  const bool is_carried = kind == Kind::kGather || kind == Kind::kScatter ||
                          (kind == Kind::kBroadcast && group.size() == 2);
  if (!is_carried || group.single_copy() == SingleCopy::kNever || !group.may_write_arrays()) {
    return false;
  }
  if (group.single_copy() == SingleCopy::kAlways) return true;
  const std::size_t parts = kind == Kind::kBroadcast ? 1 : static_cast<std::size_t>(group.size());
  return may_be_quicker() && bytes_of(signature) * parts >= shared_from(kind, group.size());
}

bool writes_result(const ShmGroup& group, const engine::Signature& signature) noexcept {
  return signature.kind == Kind::kReduce && group.may_write_arrays() &&
         exposes_reduced(group, signature);
}

bool exposes_parts(const ShmGroup& group, Kind kind, const ShmParts& parts) noexcept {
  if (group.single_copy() != SingleCopy::kWhereQuicker) {
    return group.single_copy() == SingleCopy::kAlways;
  }
  if (!may_be_quicker()) return false;
  std::size_t total = 0;
  for (int peer = 0; peer < group.size(); ++peer) total += parts.bytes(peer);
  const auto size = static_cast<std::size_t>(group.size());
  return is_long_enough(kind, total / size, total, group.size());
}

// Chooses one copy only between two ranks, because several readers of the same pages contend in the
// kernel.
bool exposes_whole(const ShmGroup& group, std::size_t bytes) noexcept {
  if (group.single_copy() != SingleCopy::kWhereQuicker) {
    return group.single_copy() == SingleCopy::kAlways;
  }
  return may_be_quicker() && group.size() == 2 && bytes >= 48 * kKiB;
}

bool exposes_reduced(const ShmGroup& group, const engine::Signature& signature) noexcept {
  if (group.single_copy() != SingleCopy::kWhereQuicker) {
    return group.single_copy() == SingleCopy::kAlways;
  }
  const Kind kind = signature.kind;
  // For a reduction with parts of different sizes, chunks are always used.
  if (!may_be_quicker() || is_listed(kind)) return false;
  const std::size_t parts = engine::has_parts(kind) ? static_cast<std::size_t>(group.size()) : 1;
  return bytes_of(signature) * parts >= reduced_from(kind, group.size());
}

}  // namespace hocket::engines::shm
