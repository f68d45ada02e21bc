// Sparse matrices as messages.
#pragma once

#include <cstdint>

#include "hocket/sparse.h"

namespace hocket::composed {

// How many int64 describe a matrix. The same order as in hocket/_sparse_contents.py.
inline constexpr std::size_t kSparseWords = 10;

// Throws InvalidArgument where the arrays do not fit each other or are not in host memory. Says
// nothing of the indices' values; see `check_indices`.
SparseLayout layout_of(const SparseView& view, const char* name);
// Throws where offsets or indices point out of the matrix. O(entries).
void check_indices(const SparseView& view);

void encode(const SparseLayout& layout, std::int64_t* words);
// Throws InvalidArgument where a rank sent what describes no matrix.
SparseLayout decode(const std::int64_t* words);

// Copies the matrix's arrays to where its layout says.
void pack(const SparseView& view, const SparseLayout& layout, std::byte* to);

}  // namespace hocket::composed
