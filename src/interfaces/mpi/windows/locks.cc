#include "interfaces/mpi/windows/locks.h"

namespace hocket::mpi {
namespace {

// `exclusive` and `accumulating` have a cache line each. The bytes of `shared` follow, packed.
constexpr std::size_t kLine = 64;
constexpr std::size_t kExclusive = 0, kAccumulating = kLine, kShared = 2 * kLine;

bool try_take(std::atomic_ref<std::int32_t> word, int self) noexcept {
  std::int32_t free = 0;
  return word.load(std::memory_order_relaxed) == 0 &&
         word.compare_exchange_strong(free, self + 1, std::memory_order_seq_cst);
}

}  // namespace

std::size_t TargetLocks::bytes(int ranks) noexcept {
  return kShared + (static_cast<std::size_t>(ranks) + kLine - 1) / kLine * kLine;
}

std::atomic_ref<std::int32_t> TargetLocks::exclusive() const noexcept {
  return std::atomic_ref(*reinterpret_cast<std::int32_t*>(words_ + kExclusive));
}
std::atomic_ref<std::int32_t> TargetLocks::accumulating() const noexcept {
  return std::atomic_ref(*reinterpret_cast<std::int32_t*>(words_ + kAccumulating));
}
std::atomic_ref<std::uint8_t> TargetLocks::shared(int rank) const noexcept {
  return std::atomic_ref(*reinterpret_cast<std::uint8_t*>(words_ + kShared + rank));
}

// Sequentially consistent: of two ranks that lock at once, at least one sees the other's word.
bool TargetLocks::try_keep_out(int self) const noexcept { return try_take(exclusive(), self); }
bool TargetLocks::is_shared() const noexcept {
  for (int rank = 0; rank < ranks_; ++rank) {
    if (shared(rank).load(std::memory_order_seq_cst) != 0) return true;
  }
  return false;
}

void TargetLocks::lock_exclusive(int self, const Check& check) const {
  await(check, [&] { return try_keep_out(self); });
  try {
    await(check, [&] { return !is_shared(); });
  } catch (...) {
    unlock(self, Held::kExclusive);
    throw;
  }
}
bool TargetLocks::try_lock_shared(int self) const noexcept {
  shared(self).store(1, std::memory_order_seq_cst);
  if (exclusive().load(std::memory_order_seq_cst) == 0) return true;
  unlock(self, Held::kShared);
  return false;
}
void TargetLocks::unlock(int self, Held kind) const noexcept {
  // These stores pair with the loads and exchanges of both kinds of lock.
  if (kind == Held::kExclusive) exclusive().store(0, std::memory_order_release);
  if (kind == Held::kShared) shared(self).store(0, std::memory_order_release);
}

void TargetLocks::begin_accumulate(int self, const Check& check) const {
  await(check, [&] { return try_take(accumulating(), self); });
}
void TargetLocks::end_accumulate() const noexcept {
  accumulating().store(0, std::memory_order_release);  // pairs with try_take
}

}  // namespace hocket::mpi
