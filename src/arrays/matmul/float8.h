// Products of factors of 8 bits, by cuBLASLt.
#pragma once

#include <memory>
#include <optional>

#include "arrays/matmul/blas.h"
#include "arrays/matmul/cublas.h"
#include "foundation/cuda/memory.h"

namespace hocket::matmul {

// cuBLAS's type of a factor.
cublas::DataType type_of(DType dtype);

// A resource of one plan, with memory for cuBLASLt to work in; one thread, the GPU's context
// current. Throws DeviceError.
class Float8Products {
 public:
  Float8Products(const CublasHandle& handle, std::shared_ptr<const cuda::DeviceContext> device)
      : handle_(handle), device_(std::move(device)) {}

  // True if this GPU and this library support it. Tested once, by a product.
  bool can_multiply(DType left, DType right, cuda::Stream stream);
  // The product as Local::multiplies describes; call it after can_multiply.
  void multiply(const LocalProduct& product, cuda::Stream stream);

 private:
  cublas::Status try_multiply(const LocalProduct& product, cuda::Stream stream) const;

  const CublasHandle& handle_;
  const std::shared_ptr<const cuda::DeviceContext> device_;
  std::optional<bool> can_;
  std::optional<cuda::DeviceBuffer> workspace_;
};

}  // namespace hocket::matmul
