// Reads that take ownership of cache lines from the core that wrote them.
//
// If one core writes a line and another only reads it, both caches share the line. Before the
// writer stores to it again, all copies must be invalidated. On AMD's processors that takes several
// times as long as moving the line from one cache to the other. A *claim* requests the line as a
// store does, but stores nothing: it is an AVX-512 store with an empty mask. (PREFETCHW has the
// same purpose, but helps little here.) On processors on which it was not measured, a claim does
// nothing.
//
// The functions have no state. Any thread may call them, with any alignment. The claimed memory
// must be writable for this process, and no thread may write to it meanwhile.
#pragma once

#include <cstddef>

namespace hocket::core {

// Returns whether a claim has an effect on this processor.
bool can_claim() noexcept;

// Claims memory that is about to be read: at most a KiB or two, which a core can have in flight.
void claim(const void* at, std::size_t bytes) noexcept;

// Does the same as memcpy, and claims `in` ahead of the copy.
void copy_claimed(void* out, const void* in, std::size_t bytes) noexcept;

}  // namespace hocket::core
