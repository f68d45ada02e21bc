// Waits on a word of shared memory, and detects the death of a thread by such a word.
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

// Sleeps while `word` is `expected`, until a wake-up, the deadline or a signal. It may return
// spuriously. Returns false if the deadline passed.
bool futex_wait(FutexWord& word, std::uint32_t expected, base::Deadline deadline) noexcept;
void futex_wake_all(FutexWord& word) noexcept;

// A word, and the value for which a thread sleeps.
struct FutexWait {
  FutexWord* word = nullptr;
  std::uint32_t expected = 0;
};
inline constexpr std::size_t kMaxFutexWaits = 127;

// Sleeps while all words have the expected values, for at most kMaxFutexWaits + 1 words. If
// futex_waitv is missing (before Linux 5.16) or refused, it sleeps on the first word alone, for at
// most 5 ms.
void futex_wait_any(std::span<const FutexWait> waits, base::Deadline deadline) noexcept;

// Makes all earlier stores of all registered processes visible to the caller, before the caller's
// later loads. It is the slow half of an asymmetric fence; the fast half is a compiler barrier.
// Returns false if the kernel refuses.
bool heavy_fence() noexcept;
// Includes this process in the heavy_fence of other processes. Called once in a process.
bool register_for_heavy_fence() noexcept;
// The fast half.
inline void light_fence() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }

// A word that the kernel marks when the thread that holds it ends, for any reason and before the
// process's memory is freed. It lies in shared memory. The layout is the kernel's robust list
// entry, followed by the futex word.
struct alignas(16) RobustWord {
  void* next = nullptr;  // an address in the owner's process; meaningless in others
  FutexWord word{0};

  static constexpr std::uint32_t kOwnerDied = 0x40000000;
  bool owner_died() const noexcept {
    return (word.load(std::memory_order_acquire) & kOwnerDied) != 0;
  }
};

// A resource: the calling thread's hold on robust words. It replaces the thread's robust list, so
// the thread must never use robust mutexes. It cannot be moved. The thread that made it destroys
// it, which releases the words as a clean end. Throws SystemError if the kernel refuses.
class RobustHold {
 public:
  RobustHold();
  RobustHold(const RobustHold&) = delete;
  RobustHold& operator=(const RobustHold&) = delete;
  ~RobustHold();

  void add(RobustWord& word) noexcept;

 private:
  struct Head {  // the kernel's struct robust_list_head
    void* first = nullptr;
    long futex_offset = offsetof(RobustWord, word);
    void* pending = nullptr;
  };
  Head head_;
};

// Throws SystemError if a RobustHold is not possible.
void require_robust_words();

}  // namespace hocket::os
