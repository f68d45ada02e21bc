// Types for data that threads and processes share: atomics, and plain data that atomics publish.
//
// The lock-free code takes both only from this header. So tests/relacy can compile the same sources
// with a simulator of threads and memory: its include path puts another header of this name first.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstring>

namespace hocket::base {

template <typename T>
using Atomic = std::atomic<T>;

// A plain value that one thread writes. Other threads read it only after an atomic has published
// it.
template <typename T>
using NonAtomic = T;
// A plain value that a thread may read while another writes it. The reader then learns from an
// atomic that the value is not valid.
template <typename T>
using Torn = T;

inline void thread_fence(std::memory_order order) noexcept { std::atomic_thread_fence(order); }

// Copies bytes. One of the two sides is shared memory, under the rules of a NonAtomic.
inline void copy_plain(void* to, const void* from, std::size_t bytes) noexcept {
  std::memcpy(to, from, bytes);
}

}  // namespace hocket::base
