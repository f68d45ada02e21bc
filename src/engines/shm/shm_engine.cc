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

// Limits between a one-shot and a two-shot reduction of n ranks. In a one-shot reduction each rank
// reads n - 1 arrays. In a two-shot reduction each rank reads only 2 (n - 1) / n of an array, but
// all ranks meet once more. So two-shot is faster from three ranks on, if reading an array costs
// more than a meeting. In a reduce only the root reads, and one-shot stays faster up to a larger
// number of ranks. Among many ranks with a processor each, a meeting is cheap compared with
// reading.
constexpr std::size_t kTwoShotFrom = 16 * 1024;
constexpr std::size_t kTwoShotAmongManyFrom = 6 * 1024;
constexpr int one_shot_ranks(Kind kind) { return kind == Kind::kReduce ? 4 : 2; }
constexpr int many_ranks(Kind kind) { return kind == Kind::kReduce ? 24 : 8; }
// Limits between the two kinds of scan. A chain takes one transfer from each rank to the next. A
// scan by parts takes two meetings of all ranks, independent of their number. A chain moves less
// data, so it is faster for long arrays. The byte limits are multiplied by the number of ranks. If
// ranks share processors, the limit is higher, because each step of a chain costs a context switch.
constexpr int kScanPartsRanks = 4;
constexpr std::size_t kScanChainFrom = 1024;
constexpr std::size_t kCrowdedScanChainFrom = 512 * 1024;
// Symmetric arrays up to this size in bytes go through slots, which take one meeting instead of
// two.
constexpr std::size_t kSymmetricFrom = 2048;

// Returns the longest data of a rank for which a call goes through slots, if each rank has a
// processor. A root that only gives has no peer to wait for: with a slot for each call it runs
// ahead of its peers, where the chunks have room for the next call alone. Two ranks save the steps
// of a call through chunks, up to the length at which one copy by the kernel is faster.
std::size_t most_in_slots(Kind kind, int size) noexcept {
  if (engine::row_of(kind).flow == engine::Flow::kFromRoot) return kLongBytes;
  if (size != 2 || is_reduction(kind)) return kSlotBytes;
  return kind == Kind::kAllGather ? kLongBytes / 2 : kLongBytes;
}

}  // namespace

std::uint64_t ShmEngine::tuning() noexcept {
  std::uint64_t hash = base::kHashSeed;
  for (const std::size_t bytes : {kTwoShotFrom,
                                  kTwoShotAmongManyFrom,
                                  kScanChainFrom,
                                  kCrowdedScanChainFrom,
                                  kSymmetricFrom,
                                  kSlotBytes,
                                  kLongBytes,
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
    hash = base::mix(hash, static_cast<std::uint64_t>(many_ranks(kind)));
  }
  hash = base::mix(hash, static_cast<std::uint64_t>(kScanPartsRanks));
  for (const std::uint64_t slots : kSlotsOf) hash = base::mix(hash, slots);
  constexpr ManyRanks kMany;
  for (const int limit : {kMany.seconds_ranks,
                          kMany.rows_ranks,
                          kMany.scan_width,
                          kMany.collected_ranks,
                          kMany.all_reduce_ranks,
                          kMany.reduce_ranks}) {
    hash = base::mix(hash, static_cast<std::uint64_t>(limit));
  }
  for (const std::size_t bytes : {kMany.all_reduce_total, kMany.reduce_total, kMany.reduce_part}) {
    hash = base::mix(hash, bytes);
  }
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
  if (s.symmetric != 0) return bytes <= kSymmetricFrom;
  return bytes <= (group_.is_crowded() ? kSlotBytes : most_in_slots(s.kind, group_.size()));
}

bool ShmEngine::attempt(const Call& call) {
  if (!is_small(call.signature)) return false;
  return attempt_among_many(group_, call, way_of(call.signature), many_);
}

Task ShmEngine::start(const Call& call) {
  if (is_small(call.signature)) {
    return small_among_many(group_, call, way_of(call.signature), many_);
  }
  if (call.signature.symmetric != 0) return start_symmetric(call);
  const Kind kind = call.signature.kind;
  if (copies_by_both_ends(group_, call.signature)) return move_by_both_ends(group_, call);
  if (!is_reduction(kind)) return move(group_, call);
  if (is_prefix(kind)) {
    const std::size_t from = group_.is_crowded() ? kCrowdedScanChainFrom : kScanChainFrom;
    const bool by_parts = group_.size() >= kScanPartsRanks &&
                          bytes_of(call.signature) < from * static_cast<std::size_t>(group_.size());
    return by_parts ? scan_by_parts(group_, call) : scan(group_, call);
  }
  const bool exposed = exposes_reduced(group_, call.signature);
  if (has_parts(kind)) {
    return exposed ? exposed_reduce_scatter(group_, call) : reduce_scatter(group_, call);
  }
  if (writes_result(group_, call.signature)) return exposed_reduce_to_root(group_, call);
  if (exposed) return exposed_reduce(group_, call);
  const bool among_many = group_.size() >= many_ranks(kind) && !group_.is_crowded();
  const bool one_shot =
      group_.size() <= one_shot_ranks(kind) ||
      bytes_of(call.signature) < (among_many ? kTwoShotAmongManyFrom : kTwoShotFrom);
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
