// Locks on a target's memory, in words that all ranks have mapped.
//
// Each target has these words in the region of its window:
//
//     | exclusive       | the rank that holds the lock alone, plus one; 0: none
//     | accumulating    | the rank that changes memory by an operator, plus one; 0: none
//     | shared[ranks]   | 1 for each rank that holds the lock with others
//
// A rank that locks alone first takes `exclusive`, then waits until no rank has the lock with
// others. One that locks with others sets its mark first and looks at `exclusive` afterwards, so at
// least one of the two sees the other.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>

namespace hocket::mpi {

// Called again and again by a waiter. It throws if a rank of the window has died.
using Check = std::function<void()>;

// Waits until `has_come` returns true. Gives the processor away early, as what it waits for may
// take long.
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
  void unlock_exclusive() const noexcept;
  // Returns false if another rank has the lock alone.
  bool try_lock_shared(int self) const noexcept;
  void unlock_shared(int self) const noexcept;
  bool is_exclusive() const noexcept;

  // A rank changes the target's memory by an operator only between these.
  void begin_accumulate(int self, const Check& check) const;
  void end_accumulate() const noexcept;

 private:
  std::atomic_ref<std::int32_t> exclusive() const noexcept;
  std::atomic_ref<std::int32_t> accumulating() const noexcept;
  std::atomic_ref<std::uint8_t> shared(int rank) const noexcept;

  std::byte* words_;
  int ranks_;
};

}  // namespace hocket::mpi
