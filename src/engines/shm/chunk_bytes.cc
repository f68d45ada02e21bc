// The chunk size of a call. All ranks choose the same size, from the signature and the group's
// size.
//
// Each step costs a meeting of all ranks. So few long steps are best, provided that two chunks fit
// into a core's private cache. In an all_gather short chunks are best, because they let the peers
// begin to read early. For arrays larger than the caches neither choice helps. Measured with 4 to
// 32 ranks, each on a core with 2 MiB of cache; docs/notes/performance.md has the figures.
#include <algorithm>

#include "engines/shm/shm_group.h"

namespace hocket::engines::shm {
namespace {

// Arrays of this size in bytes do not stay in the caches.
constexpr std::size_t kLongArray = std::size_t{4} << 20;

// Returns a chunk size of about half the array, so that a call takes two steps.
std::size_t half_of(std::size_t bytes) {
  return std::clamp(bytes / 2 / kChunkBytes * kChunkBytes, kChunkBytes, kLongChunkBytes);
}

}  // namespace

std::size_t chunk_bytes(const engine::Signature& signature, int size) noexcept {
  using engine::Has;
  const engine::KindRow& row = engine::row_of(signature.kind);
  const bool is_among_all = row.flow == engine::Flow::kAmongAll || row.reduces;
  if (chunk_room(size) < kLongChunkBytes || !is_among_all || is_listed(signature.kind)) {
    return kChunkBytes;
  }
  const bool has_shares = row.gives == Has::kAll || row.takes == Has::kAll;
  const std::size_t bytes = bytes_of(signature) * (has_shares ? static_cast<std::size_t>(size) : 1);
  if (bytes >= kLongArray) return kChunkBytes;
  return row.gives == Has::kShare ? kShortChunkBytes : half_of(bytes);
}

}  // namespace hocket::engines::shm
