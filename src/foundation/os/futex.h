// Sleeps on words of shared memory, and detects by such a word that a thread has died.
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

// Sleeps while `word` equals `expected`, until a wake-up, the deadline or a signal. It may also
// return for no reason. Returns false if the deadline has passed.
bool futex_wait(FutexWord& word, std::uint32_t expected, base::Deadline deadline) noexcept;
void futex_wake_all(FutexWord& word) noexcept;

// A word, and the value with which a thread sleeps on it.
struct FutexWait {
  FutexWord* word = nullptr;
  std::uint32_t expected = 0;
};
inline constexpr std::size_t kMaxFutexWaits = 127;

// Sleeps while all words have their expected values. There may be kMaxFutexWaits + 1 words. Without
// futex_waitv (before Linux 5.16, or if the kernel refuses it), it sleeps on the first word alone,
// for at most 5 ms.
void futex_wait_any(std::span<const FutexWait> waits, base::Deadline deadline) noexcept;

// The slow side of an asymmetric fence. It makes all stores that registered processes have made so
// far visible to the caller's later loads:
//
//   publisher (fast, frequent)           sleeper (slow, rare)
//   store data                           store "I sleep"
//   light_fence()                        heavy_fence()
//   load "does somebody sleep?"          load data once more
//
// At least one of the two sees the other's store. Returns false if the kernel refuses.
bool heavy_fence() noexcept;
// Makes heavy_fence of other processes include this process. Called once in a process. Returns
// false if the kernel refuses.
bool register_for_heavy_fence() noexcept;
// The fast side of the asymmetric fence: only a compiler barrier.
inline void light_fence() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }

// A word in shared memory that the kernel marks when the thread that holds it ends, whatever the
// reason. It marks the word before it frees the process's memory. The layout is the kernel's: the
// entry of a robust list, followed by the futex word.
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
// it. This releases the words, which peers see as a clean end. Throws SystemError if the kernel
// refuses.
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

// Throws SystemError if the kernel refuses a RobustHold.
void require_robust_words();

}  // namespace hocket::os
