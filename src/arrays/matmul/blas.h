// Products within a rank, and the libraries that make them.
#pragma once

#include <complex>
#include <cstddef>
#include <memory>
#include <string>

#include "arrays/matmul/blocks.h"
#include "foundation/base/config.h"
#include "hocket/types.h"

namespace hocket::matmul {

// Storage of a factor: as it is, transposed, or transposed and conjugated.
enum class Stored : std::uint8_t { kPlain, kTransposed, kConjugateTransposed };

// target = alpha left right + beta target, m x k by k x n. With a beta of 0 the target is not read.
// A value.
//
// - On the host, all matrices have one dtype: float32, float64, complex64 or complex128.
// - On a GPU, factors may also be float16 or bfloat16. The target is then the same or float32.
// - On a GPU, each factor may have either dtype of 8 bits if Local::multiplies says so. The target
//   is then float32.
struct LocalProduct {
  DType dtype{}, right_dtype{}, target_dtype{};
  std::size_t m = 0, n = 0, k = 0;
  std::complex<double> alpha = 1, beta = 0;
  Columns<const std::byte> left, right;
  Stored left_stored{}, right_stored{};
  Columns<std::byte> target;
};

// A BLAS library. Any thread may use it.
class Blas {
 public:
  virtual ~Blas() = default;
  virtual const std::string& name() const noexcept = 0;  // name of the library, with its version
  virtual void multiply(const LocalProduct& product) const = 0;
};

// The built-in library, which always exists.
std::shared_ptr<Blas> eigen_blas();
// Returns a library with the C interface of BLAS. If `choice` names none, takes a library that the
// process has loaded, or else one of the system. If there is none, returns null and sets `why_not`.
std::shared_ptr<Blas> loaded_blas(const base::LibraryChoice& choice, std::string& why_not);

// The library that HOCKET_BLAS_LIBRARY selects. Throws InvalidArgument if it is missing.
std::shared_ptr<Blas> find_blas();

}  // namespace hocket::matmul
