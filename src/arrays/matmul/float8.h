// Products of factors of 8 bits, by cuBLASLt.
#pragma once

#include <memory>
#include <optional>

#include "arrays/matmul/blas.h"
#include "arrays/matmul/cublas.h"
#include "foundation/cuda/memory.h"

namespace hocket::matmul {

// Returns cuBLAS's type for a dtype of factors.
cublas::DataType type_of(DType dtype);

// A resource of one plan, with memory for cuBLASLt to work in. One thread uses it, with the GPU's
// context current. Throws DeviceError.
class Float8Products {
 public:
  Float8Products(const CublasHandle& handle, std::shared_ptr<const cuda::DeviceContext> device)
      : handle_(handle), device_(std::move(device)) {}

  // Returns whether this GPU and this library make such products. The first call tests it by a
  // product.
  bool can_multiply(DType left, DType right, cuda::Stream stream);
  // Makes a product as Local::multiplies describes. `can_multiply` must have returned true.
  void multiply(const LocalProduct& product, cuda::Stream stream);

 private:
  cublas::Status try_multiply(const LocalProduct& product, cuda::Stream stream) const;

  const CublasHandle& handle_;
  const std::shared_ptr<const cuda::DeviceContext> device_;
  std::optional<bool> can_;
  std::optional<cuda::DeviceBuffer> workspace_;
};

}  // namespace hocket::matmul
