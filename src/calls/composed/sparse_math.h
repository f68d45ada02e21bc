// Sums and products of sparse matrices, on one rank.
#pragma once

#include <span>

#include "hocket/sparse.h"

namespace hocket::composed {

// Combines matrices of one format and element type, first to last. Throws InvalidArgument if an
// index is outside its matrix. Shapes must fit.
SparseMatrix fold(std::span<const SparseMatrix> matrices, SparseOp op);

}  // namespace hocket::composed
