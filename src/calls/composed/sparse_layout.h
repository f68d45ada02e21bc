// Sparse matrices as messages.
#pragma once

#include <cstdint>

#include "hocket/sparse.h"

namespace hocket::composed {

// Number of int64 words that describe a matrix. hocket/_arrays/sparse_contents.py uses the same
// order.
inline constexpr std::size_t kSparseWords = 10;

// Returns the layout of a matrix. Throws InvalidArgument if the arrays do not fit each other or are
// not in host memory. It does not check the indices' values; see `check_indices`.
SparseLayout layout_of(const SparseView& view, const char* name);
// Throws if an offset or index is outside the matrix. O(entries).
void check_indices(const SparseView& view);

void encode(const SparseLayout& layout, std::int64_t* words);
// Throws InvalidArgument if a rank's words do not describe a matrix.
SparseLayout decode(const std::int64_t* words);

// Copies the matrix's arrays to the positions of the layout.
void pack(const SparseView& view, const SparseLayout& layout, std::byte* to);

}  // namespace hocket::composed
