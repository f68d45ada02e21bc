// Reads that take ownership of cache lines from the core that wrote them.
//
// If one core writes a line and another only reads it, both caches share the line. Before the
// writer can store to the line again, all other copies must be invalidated. On AMD's processors the
// invalidation takes several times as long as moving the line from one cache to the other. A
// *claim* requests the line as a store does, but stores nothing: it is an AVX-512 store with an
// empty mask. (PREFETCHW has the same purpose, but helps little here.) On a processor on which the
// effect was not measured, a claim does nothing.
//
// The functions have no state. Any thread may call them, with any alignment. The claimed memory
// must be writable for this process, and no thread may write to it meanwhile.
#pragma once

#include <cstddef>

namespace hocket::core {

// Returns whether a claim has an effect on this processor.
bool can_claim() noexcept;

// Claims memory that is about to be read. `bytes` is at most a KiB or two: a core cannot have more
// lines in flight.
void claim(const void* at, std::size_t bytes) noexcept;

// Copies like memcpy, and claims the lines of `in` ahead of the copy.
void copy_claimed(void* out, const void* in, std::size_t bytes) noexcept;

}  // namespace hocket::core
