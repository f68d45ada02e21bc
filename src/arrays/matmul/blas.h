// Products within a rank: whose library makes them, and how it is asked.
#pragma once

#include <complex>
#include <cstddef>
#include <memory>
#include <string>

#include "arrays/matmul/blocks.h"
#include "hocket/types.h"

namespace hocket::matmul {

// How a factor is stored: as it is, along the other axis, or so and conjugated.
enum class Stored : std::uint8_t { kPlain, kTransposed, kConjugateTransposed };

// target = alpha left right + beta target, m x k by k x n. With a beta of 0 the target is not read.
// On the host all is of one dtype: float32, float64, complex64 or complex128. On a GPU factors may
// be float16 or bfloat16, and the target then that or float32. They may be of 8 bits, each of its
// own kind, where Local::multiplies says so; the target is float32 then. A value.
struct LocalProduct {
  DType dtype{}, right_dtype{}, target_dtype{};
  std::size_t m = 0, n = 0, k = 0;
  std::complex<double> alpha = 1, beta = 0;
  Columns<const std::byte> left, right;
  Stored left_stored{}, right_stored{};
  Columns<std::byte> target;
};

// A library. Any thread.
class Blas {
 public:
  virtual ~Blas() = default;
  virtual const std::string& name() const noexcept = 0;  // with its version
  virtual void multiply(const LocalProduct& product) const = 0;
};

// The one that is always there.
std::shared_ptr<Blas> eigen_blas();
// One with the C interface of BLAS: `file` names it; empty: one that the process has loaded, or one
// of the system's. Null, and why.
std::shared_ptr<Blas> loaded_blas(const std::string& file, std::string& why_not);

// As HOCKET_BLAS_LIBRARY says. Throws InvalidArgument where that one is not there.
std::shared_ptr<Blas> find_blas();

}  // namespace hocket::matmul
