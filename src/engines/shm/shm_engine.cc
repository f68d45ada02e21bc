#include "engines/shm/shm_engine.h"

#include "engines/shm/collectives.h"

namespace hocket::engines::shm {

using engine::Call;
using engine::Kind;
using engine::Score;
using engine::Signature;
using engine::Task;

namespace {

// One shot reads (n - 1) times the array a rank, two shots 2 (n - 1) / n times with one meeting
// more: from three ranks on two shots win as soon as reading costs more than meeting.
constexpr std::size_t kTwoShotFrom = 16 * 1024;
// Calls this small are worth an attempt without a task.
constexpr std::size_t kAttemptBytes = 1024;
// Symmetric arrays up to here are quicker through slots: one meeting instead of two.
constexpr std::size_t kSymmetricFrom = 2048;

// Bytes of a rank's slot that the call would fill.
std::size_t slot_bytes(const Signature& s, int size) {
  const std::size_t bytes = bytes_of(s);
  switch (s.kind) {
    case Kind::kReduceScatter:
    case Kind::kScatter:
    case Kind::kAllToAll:
      return bytes * static_cast<std::size_t>(size);
    default:
      return bytes;
  }
}

}  // namespace

std::optional<Score> ShmEngine::score(const Signature& s) const noexcept {
  if (s.memory != MemoryKind::kHost || s.kind > Kind::kAllToAllV) return std::nullopt;
  return Score{0};  // whatever else a host's ranks could use, this is quicker
}

Task ShmEngine::start(const Call& call) {
  const Signature& s = call.signature;
  const std::size_t slot = slot_bytes(s, group_.size());
  if (s.symmetric != 0 && slot > kSymmetricFrom) return start_symmetric(call);
  const bool small = slot <= kSlotBytes;
  switch (s.kind) {
    case Kind::kBarrier:
      return small_barrier(group_, call);
    case Kind::kAllReduce:
    case Kind::kReduce:
    case Kind::kReduceScatter:
    case Kind::kReduceScatterV:
      return start_reduction(call, small);
    case Kind::kBroadcast:
      return small ? small_broadcast(group_, call) : move(group_, call);
    case Kind::kAllGather:
      return small ? small_all_gather(group_, call) : move(group_, call);
    case Kind::kGather:
      return small ? small_gather(group_, call) : move(group_, call);
    case Kind::kScatter:
      return small ? small_scatter(group_, call) : move(group_, call);
    case Kind::kAllToAll:
      return small ? small_all_to_all(group_, call) : move(group_, call);
    default:
      return move(group_, call);
  }
}

bool ShmEngine::attempt(const Call& call) {
  const Signature& s = call.signature;
  if (s.kind == Kind::kBarrier) return attempt_barrier(group_, call);
  if (s.kind != Kind::kAllReduce || bytes_of(s) > kAttemptBytes) return false;
  return attempt_all_reduce(group_, call);
}

Task ShmEngine::start_reduction(const Call& call, bool small) {
  switch (call.signature.kind) {
    case Kind::kReduceScatterV:
      return reduce_scatter(group_, call);
    case Kind::kReduceScatter:
      return small ? small_reduce_scatter(group_, call) : reduce_scatter(group_, call);
    case Kind::kReduce:
      if (small) return small_reduce(group_, call);
      break;
    default:
      if (small) return small_all_reduce(group_, call);
  }
  const bool one_shot = group_.size() <= 2 || bytes_of(call.signature) < kTwoShotFrom;
  return one_shot ? one_shot_reduce(group_, call) : two_shot_reduce(group_, call);
}

Task ShmEngine::start_symmetric(const Call& call) {
  switch (call.signature.kind) {
    case Kind::kAllReduce:
      return symmetric_all_reduce(group_, call);
    case Kind::kReduce:
    case Kind::kReduceScatter:
      return symmetric_reduce(group_, call);
    default:
      return symmetric_move(group_, call);
  }
}

}  // namespace hocket::engines::shm
