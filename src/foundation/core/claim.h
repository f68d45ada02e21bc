// Reads that take cache lines over from whoever wrote them.
//
// A line that one core writes and another only reads ends up shared by both, and before the writer
// stores to it again, all copies must be called in. On AMD's processors that takes several times as
// long as a line that changes hands altogether: such a one is in one cache at a time, so nobody
// else needs asking. A *claim* asks for a line as a store does and stores nothing: an AVX-512 store
// with an empty mask. (PREFETCHW, which is meant for this, is of little use there.) On processors
// where it was not measured, a claim is nothing at all.
//
// Free of state, safe in any thread, any alignment. What is claimed must be memory that this
// process may write, which nobody writes meanwhile.
#pragma once

#include <cstddef>

namespace hocket::core {

// Whether a claim is anything on this processor.
bool can_claim() noexcept;

// Claims what is about to be read: a KiB or two, not more than a core can have under way.
void claim(const void* at, std::size_t bytes) noexcept;

// memcpy that claims `in` as it goes.
void copy_claimed(void* out, const void* in, std::size_t bytes) noexcept;

}  // namespace hocket::core
