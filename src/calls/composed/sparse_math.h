// Sums and products of sparse matrices, on one rank.
#pragma once

#include <span>

#include "hocket/sparse.h"

namespace hocket::composed {

// Folds matrices of one format and element type, first to last. Throws InvalidArgument where an
// index points out of its matrix. Shapes must fit.
SparseMatrix fold(std::span<const SparseMatrix> matrices, SparseOp op);

}  // namespace hocket::composed
