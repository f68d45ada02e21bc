// Copies of parts of matrices, and the last step of a product.
#pragma once

#include <complex>
#include <cstddef>
#include <vector>

#include "arrays/matmul/axis.h"
#include "hocket/types.h"

namespace hocket::matmul {

// A matrix stored along its first axis: element (i, j) is at i + j * stride. A view.
template <typename Byte>
struct Columns {
  Byte* at = nullptr;
  std::size_t stride = 0;  // elements
};

enum class Change : std::uint8_t { kNone, kConjugate, kToFloat32, kToFloat16 };

// Copies the rows and columns of the runs. kConjugate needs complex elements. kToFloat32 needs
// elements of 8 or 16 bits. kToFloat16 needs elements of 8 bits, and exists only on GPUs; it is
// exact, too.
void copy_block(const std::vector<Run>& rows,
                const std::vector<Run>& columns,
                Columns<const std::byte> from,
                Columns<std::byte> to,
                DType dtype,
                Change change = Change::kNone);

// target = alpha * sum + beta * added, element by element. `sum` has the dtype `sum_dtype`; `added`
// and `target` have `dtype`. If `added.at` is null, nothing is added. `added` may be `target`.
// Numbers too large for 8 bits become the largest number. A value.
struct Finish {
  Columns<const std::byte> sum;
  DType sum_dtype{};
  Columns<const std::byte> added;
  Columns<std::byte> target;
  DType dtype{};
  std::size_t rows = 0, columns = 0;
  std::complex<double> alpha = 1, beta = 0;
};
void finish(const Finish& finish);

}  // namespace hocket::matmul
