#include "foundation/os/futex.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <ctime>
#include <exception>

#include "foundation/base/threads.h"
#include "hocket/error.h"

namespace hocket::os {
namespace {

timespec to_timespec(std::chrono::nanoseconds time) {
  return {.tv_sec = static_cast<time_t>(time.count() / 1'000'000'000),
          .tv_nsec = static_cast<long>(time.count() % 1'000'000'000)};
}

std::uint32_t* raw(FutexWord& word) { return reinterpret_cast<std::uint32_t*>(&word); }

}  // namespace

bool futex_wait(FutexWord& word, std::uint32_t expected, base::Deadline deadline) noexcept {
  timespec relative;
  timespec* timeout = nullptr;
  if (!deadline.is_never()) {
    relative = to_timespec(deadline.left());
    timeout = &relative;
  }
  const long result = syscall(SYS_futex, raw(word), FUTEX_WAIT, expected, timeout, nullptr, 0);
  return result == 0 || errno != ETIMEDOUT;
}

void futex_wake_all(FutexWord& word) noexcept {
  syscall(SYS_futex, raw(word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void futex_wait_any(std::span<const FutexWait> waits, base::Deadline deadline) noexcept {
  std::array<futex_waitv, kMaxFutexWaits + 1> entries;
  const std::size_t count = std::min(waits.size(), entries.size());
  for (std::size_t i = 0; i < count; ++i) {
    entries[i] = {.val = waits[i].expected,
                  .uaddr = reinterpret_cast<std::uint64_t>(raw(*waits[i].word)),
                  .flags = FUTEX_32,  // not FUTEX_PRIVATE_FLAG: shared between processes
                  .__reserved = 0};
  }
  timespec absolute;
  timespec* timeout = nullptr;
  if (!deadline.is_never()) {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();  // CLOCK_MONOTONIC
    absolute = to_timespec(now + deadline.left());
    timeout = &absolute;
  }
  const long result = syscall(SYS_futex_waitv, entries.data(), count, 0, timeout, CLOCK_MONOTONIC);
  if (result >= 0 || errno == EAGAIN || errno == EINTR || errno == ETIMEDOUT) return;
  // The kernel lacks futex_waitv (ENOSYS), or a container's profile refuses it with any error.
  const auto soon = base::Deadline::in(std::chrono::milliseconds(5));
  futex_wait(*waits[0].word, waits[0].expected, std::min(soon, deadline));
}

bool heavy_fence() noexcept {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0;
}

bool register_for_heavy_fence() noexcept {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

RobustHold::RobustHold() {
  head_.first = &head_;
  if (syscall(SYS_set_robust_list, &head_, sizeof(head_)) == 0) return;
  throw SystemError(
      "the kernel refuses set_robust_list, by which the ranks of a host learn of each other's end; "
      "allow it in the container's seccomp profile",
      errno);
}

RobustHold::~RobustHold() {
  // The kernel reads the registered list when the thread ends. By then this object is destroyed, so
  // an empty list takes its place.
  static Head none{.first = &none};
  syscall(SYS_set_robust_list, &none, sizeof(none));
  for (void* at = head_.first; at != &head_;) {
    auto* word = static_cast<RobustWord*>(at);
    at = word->next;
    word->word.store(0, std::memory_order_release);
    futex_wake_all(word->word);
  }
}

void RobustHold::add(RobustWord& word) noexcept {
  word.next = head_.first;
  // FUTEX_WAITERS is always set, because the kernel wakes waiters only if it is set.
  word.word.store(static_cast<std::uint32_t>(gettid()) | FUTEX_WAITERS, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  head_.first = &word;
}

void require_robust_words() {
  std::exception_ptr refusal;
  // A separate thread tries it, so that the caller's own robust list stays unchanged.
  base::start_thread("hocket-robust", [&refusal] {
    try {
      const RobustHold hold;
    } catch (...) {
      refusal = std::current_exception();
    }
  }).join();
  if (refusal) std::rethrow_exception(refusal);
}

}  // namespace hocket::os
