// Sleeping on a word of shared memory, and learning of a thread's death from one.
//
// See futex(2), futex_waitv(2), set_robust_list(2), membarrier(2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "foundation/base/atomic.h"
#include "foundation/base/deadline.h"

namespace hocket::os {

using FutexWord = base::Atomic<std::uint32_t>;

// Sleeps while `word` is `expected`, until woken, the deadline or a signal. Spurious returns
// happen. Returns false when the deadline passed.
bool futex_wait(FutexWord& word, std::uint32_t expected, base::Deadline deadline) noexcept;
void futex_wake_all(FutexWord& word) noexcept;

// A word, and the value while which to sleep.
struct FutexWait {
  FutexWord* word = nullptr;
  std::uint32_t expected = 0;
};
inline constexpr std::size_t kMaxFutexWaits = 127;

// Sleeps while all words are as expected (at most kMaxFutexWaits + 1 of them). Where there is no
// futex_waitv (before Linux 5.16, or refused) it sleeps on the first word alone, for 5 ms at most.
void futex_wait_any(std::span<const FutexWait> waits, base::Deadline deadline) noexcept;

// Makes every store that any registered process has executed before now visible to the caller, and
// keeps the caller's later loads after that: the slow half of an asymmetric fence, whose quick half
// is a compiler barrier. False where the kernel refuses.
bool heavy_fence() noexcept;
// Lets other processes' heavy_fence cover this one. Once a process.
bool register_for_heavy_fence() noexcept;
// The quick half.
inline void light_fence() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }

// One word that the kernel marks when the thread that holds it ends, by whatever cause, before the
// process's memory is taken down. Lives in shared memory; the layout is the kernel's robust list
// entry followed by the futex word.
struct alignas(16) RobustWord {
  void* next = nullptr;  // an address of the owner's; of no meaning to others
  FutexWord word{0};

  static constexpr std::uint32_t kOwnerDied = 0x40000000;
  bool owner_died() const noexcept {
    return (word.load(std::memory_order_acquire) & kOwnerDied) != 0;
  }
};

// A resource: the calling thread's hold on robust words. Replaces the thread's robust list, so the
// thread must use no robust mutexes, then or later. Not movable; destroyed by the thread that made
// it, which releases the words as a clean end. Throws SystemError where the kernel refuses.
class RobustHold {
 public:
  RobustHold();
  RobustHold(const RobustHold&) = delete;
  RobustHold& operator=(const RobustHold&) = delete;
  ~RobustHold();

  void add(RobustWord& word) noexcept;

 private:
  struct Head {  // struct robust_list_head of the kernel
    void* first = nullptr;
    long futex_offset = offsetof(RobustWord, word);
    void* pending = nullptr;
  };
  Head head_;
};

// Throws SystemError where no RobustHold can be had.
void require_robust_words();

}  // namespace hocket::os
