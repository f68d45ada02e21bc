#include "engines/shm/shm_engine.h"

#include "engines/shm/collectives.h"
#include "foundation/base/hash.h"

namespace hocket::engines::shm {

using engine::Call;
using engine::Kind;
using engine::Score;
using engine::Signature;
using engine::Task;

namespace {

// For n ranks, one-shot reads (n - 1) times the array on each rank. Two-shot reads 2 (n - 1) / n
// times the array and has one more meeting. From three ranks on, two-shot is faster once reading
// costs more than meeting. If only a root reads, the other ranks do not reduce, and one-shot is
// best for more ranks.
constexpr std::size_t kTwoShotFrom = 16 * 1024;
constexpr int one_shot_ranks(Kind kind) { return kind == Kind::kReduce ? 4 : 2; }
// A chain takes one transfer from each rank to the next. By parts takes two meetings of all ranks,
// independent of their number. For long arrays a chain moves less data.
constexpr int kScanPartsRanks = 4;
constexpr std::size_t kScanChainFrom = 512 * 1024;
// Symmetric arrays up to this size are faster through slots: one meeting instead of two.
constexpr std::size_t kSymmetricFrom = 2048;

}  // namespace

std::uint64_t ShmEngine::tuning() noexcept {
  std::uint64_t hash = base::kHashSeed;
  for (const std::size_t bytes : {kTwoShotFrom,
                                  kScanChainFrom,
                                  kSymmetricFrom,
                                  kSlotBytes,
                                  kBriefBytes,
                                  kMiddleBytes,
                                  kChunkBytes,
                                  kLongChunkBytes,
                                  kShortChunkBytes,
                                  kChunks}) {
    hash = base::mix(hash, bytes);
  }
  for (const Kind kind : {Kind::kReduce, Kind::kAllReduce}) {
    hash = base::mix(hash, static_cast<std::uint64_t>(one_shot_ranks(kind)));
  }
  hash = base::mix(hash, static_cast<std::uint64_t>(kScanPartsRanks));
  for (const std::uint64_t slots : kSlotsOf) hash = base::mix(hash, slots);
  return hash;
}

std::optional<Score> ShmEngine::score(const Signature& s) const noexcept {
  if (s.memory != MemoryKind::kHost || !kCarries.has(s.kind)) return std::nullopt;
  return Score{0};  // the fastest engine for the ranks of one host
}

// Returns whether a call goes through slots. All ranks get the same answer.
bool ShmEngine::is_small(const Signature& s) const noexcept {
  if (is_listed(s.kind)) return false;
  const std::size_t bytes = slot_bytes(s, group_.size());
  return bytes <= (s.symmetric != 0 ? kSymmetricFrom : kSlotBytes);
}

bool ShmEngine::attempt(const Call& call) {
  return is_small(call.signature) && attempt_small(group_, call);
}

Task ShmEngine::start(const Call& call) {
  if (is_small(call.signature)) return small(group_, call);
  if (call.signature.symmetric != 0) return start_symmetric(call);
  const Kind kind = call.signature.kind;
  if (copies_by_both_ends(group_, call.signature)) return move_by_both_ends(group_, call);
  if (!is_reduction(kind)) return move(group_, call);
  if (is_prefix(kind)) {
    const auto size = static_cast<std::size_t>(group_.size());
    const bool by_parts =
        group_.size() >= kScanPartsRanks && bytes_of(call.signature) < kScanChainFrom * size;
    return by_parts ? scan_by_parts(group_, call) : scan(group_, call);
  }
  const bool exposed = exposes_reduced(group_, call.signature);
  if (has_parts(kind)) {
    return exposed ? exposed_reduce_scatter(group_, call) : reduce_scatter(group_, call);
  }
  if (writes_result(group_, call.signature)) return exposed_reduce_to_root(group_, call);
  if (exposed) return exposed_reduce(group_, call);
  const bool one_shot =
      group_.size() <= one_shot_ranks(kind) || bytes_of(call.signature) < kTwoShotFrom;
  return one_shot ? one_shot_reduce(group_, call) : two_shot_reduce(group_, call);
}

Task ShmEngine::start_symmetric(const Call& call) {
  const Kind kind = call.signature.kind;
  if (engine::swaps_parts(kind)) return symmetric_swap(group_, call);
  if (!is_reduction(kind)) return symmetric_move(group_, call);
  const bool to_all = !has_parts(kind) && !is_rooted(kind);
  return to_all ? symmetric_all_reduce(group_, call) : symmetric_reduce(group_, call);
}

}  // namespace hocket::engines::shm
