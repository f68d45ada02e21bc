// What threads and processes share: atomics, and what they publish.
//
// The lock-free parts name both by this header alone, so that tests/relacy can build the same
// sources over a simulator of threads and memory: its header of this name comes first there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstring>

namespace hocket::base {

template <typename T>
using Atomic = std::atomic<T>;

// A plain value that one thread writes and others read, once an atomic has told them that they may.
template <typename T>
using Plain = T;
// A plain value that is read while it may be written; whether it was, an atomic says afterwards.
template <typename T>
using Torn = T;

inline void thread_fence(std::memory_order order) noexcept { std::atomic_thread_fence(order); }

// Bytes of which one side is shared as Plain is.
inline void copy_plain(void* to, const void* from, std::size_t bytes) noexcept {
  std::memcpy(to, from, bytes);
}

}  // namespace hocket::base
