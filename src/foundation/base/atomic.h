// Data that threads and processes share: atomics, and plain data that atomics publish.
//
// The lock-free code uses only this header for both. So tests/relacy can compile the same sources
// with a simulator of threads and memory, whose header of this name is found first.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstring>

namespace hocket::base {

template <typename T>
using Atomic = std::atomic<T>;

// A plain value that one thread writes. Others read it after an atomic has published it.
template <typename T>
using Plain = T;
// A plain value that may be read during a write. An atomic then tells whether this happened.
template <typename T>
using Torn = T;

inline void thread_fence(std::memory_order order) noexcept { std::atomic_thread_fence(order); }

// Copies bytes; one side is shared like a Plain.
inline void copy_plain(void* to, const void* from, std::size_t bytes) noexcept {
  std::memcpy(to, from, bytes);
}

}  // namespace hocket::base
