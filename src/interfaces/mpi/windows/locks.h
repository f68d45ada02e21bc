// Locks on a target's memory, in words that all ranks have mapped.
//
// Each target has these words in the region of its window:
//
//     | exclusive       | the rank that holds the exclusive lock, plus one; 0: none
//     | accumulating    | the rank that changes memory by an operator, plus one; 0: none
//     | shared[ranks]   | 1 for each rank that holds the shared lock
//
// A rank that locks exclusively first takes `exclusive`, then waits until all `shared` words are 0.
// A rank that locks shared first sets its word, then looks at `exclusive`. So at least one of the
// two sees the other.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>

namespace hocket::mpi {

// The lock that a rank holds on a target.
enum class Held : std::uint8_t {
  kNothing,
  kShared,
  kExclusive,
  kUnchecked,  // with MPI_MODE_NOCHECK: the lock was not acquired
};

// A waiter calls this repeatedly. It throws if a rank of the window has died.
using Check = std::function<void()>;

// Waits until `has_come` returns true. Yields the processor early, because waits for locks may be
// long.
template <typename F>
void await(const Check& check, F has_come) {
  constexpr int kSpins = 100, kYields = 200;
  for (int looks = 0; !has_come(); ++looks) {
    if (looks < kSpins) continue;
    check();
    if (looks < kYields) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

// A view of one target's words. Any thread of any rank may use it. Ranks are those of the window.
class TargetLocks {
 public:
  static std::size_t bytes(int ranks) noexcept;
  TargetLocks(std::byte* words, int ranks) noexcept : words_(words), ranks_(ranks) {}

  void lock_exclusive(int self, const Check& check) const;
  // Returns false if another rank has the exclusive lock.
  bool try_lock_shared(int self) const noexcept;
  void unlock(int self, Held kind) const noexcept;

  // The two steps of an exclusive lock. The first returns false if another rank has made it
  // already.
  bool try_keep_out(int self) const noexcept;
  bool is_shared() const noexcept;

  // A rank changes the target's memory by an operator only between these two calls.
  void begin_accumulate(int self, const Check& check) const;
  void end_accumulate() const noexcept;

 private:
  std::atomic_ref<std::int32_t> exclusive() const noexcept;
  std::atomic_ref<std::int32_t> accumulating() const noexcept;
  std::atomic_ref<std::uint8_t> shared(int rank) const noexcept;

  std::byte* words_;
  int ranks_;
};

// A resource: the right of one rank to change a target's memory by operators.
class AccumulateTurn {
 public:
  AccumulateTurn(TargetLocks locks, int self, const Check& check) : locks_(locks) {
    locks_.begin_accumulate(self, check);
  }
  ~AccumulateTurn() { locks_.end_accumulate(); }
  AccumulateTurn(const AccumulateTurn&) = delete;
  AccumulateTurn& operator=(const AccumulateTurn&) = delete;

 private:
  TargetLocks locks_;
};

}  // namespace hocket::mpi
