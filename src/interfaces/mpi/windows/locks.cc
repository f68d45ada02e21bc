#include "interfaces/mpi/windows/locks.h"

namespace hocket::mpi {
namespace {

// The words lie in cache lines of their own.
constexpr std::size_t kLine = 64;
constexpr std::size_t kExclusive = 0, kAccumulating = kLine, kShared = 2 * kLine;

void take(std::atomic_ref<std::int32_t> word, int self, const Check& check) {
  await(check, [&] {
    std::int32_t free = 0;
    return word.load(std::memory_order_relaxed) == 0 &&
           word.compare_exchange_strong(free, self + 1, std::memory_order_seq_cst);
  });
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

// Sequentially consistent: the mark or the word is seen by the one who comes later.
void TargetLocks::lock_exclusive(int self, const Check& check) const {
  take(exclusive(), self, check);
  try {
    for (int rank = 0; rank < ranks_; ++rank) {
      await(check, [&] { return shared(rank).load(std::memory_order_seq_cst) == 0; });
    }
  } catch (...) {
    unlock_exclusive();
    throw;
  }
}
void TargetLocks::unlock_exclusive() const noexcept {
  exclusive().store(0, std::memory_order_release);  // pairs with `take` and try_lock_shared
}
bool TargetLocks::try_lock_shared(int self) const noexcept {
  shared(self).store(1, std::memory_order_seq_cst);
  if (exclusive().load(std::memory_order_seq_cst) == 0) return true;
  unlock_shared(self);
  return false;
}
void TargetLocks::unlock_shared(int self) const noexcept {
  shared(self).store(0, std::memory_order_release);  // pairs with lock_exclusive
}
bool TargetLocks::is_exclusive() const noexcept {
  return exclusive().load(std::memory_order_acquire) != 0;
}

void TargetLocks::begin_accumulate(int self, const Check& check) const {
  take(accumulating(), self, check);
}
void TargetLocks::end_accumulate() const noexcept {
  accumulating().store(0, std::memory_order_release);  // pairs with `take`
}

}  // namespace hocket::mpi
