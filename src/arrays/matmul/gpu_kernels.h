// What cuBLAS has not: copies of rows and columns that lie apart, and sums that become numbers of 8
// or 16 bits.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "arrays/matmul/blocks.h"
#include "foundation/cuda/text_kernel.h"

namespace hocket::matmul {

// Where the rows and columns of a block lie, as the kernel that copies them reads it: of each row
// where it comes from, then of each where it goes to, and the same of the columns.
std::vector<std::uint32_t> table_of(const std::vector<Run>& rows, const std::vector<Run>& columns);

// A resource of one GPU; one thread, with the GPU's context current. Kernels are loaded when they
// are first wanted. Throws DeviceError.
class GpuKernels {
 public:
  explicit GpuKernels(std::shared_ptr<const cuda::DeviceContext> device)
      : device_(std::move(device)) {}

  // `change` is not kToFloat32. `table` is what table_of made, in the GPU's memory.
  void copy(const void* table,
            std::size_t rows,
            std::size_t columns,
            Columns<const std::byte> from,
            Columns<std::byte> to,
            DType dtype,
            Change change,
            cuda::Stream stream);
  // Of sums of float32, and other numbers of 8 or 16 bits.
  void finish(const Finish& finish, cuda::Stream stream);

 private:
  // By what an element is to it.
  enum class Element : std::uint8_t {
    k1,
    k2,
    k4,
    k8,
    k16,
    kComplex64,
    kComplex128,
    kFloat8E4M3,
    kFloat8E5M2,
    kCount
  };
  static Element element_of(DType dtype, Change change);
  const cuda::TextKernel& copier(Element element);
  const cuda::TextKernel& finisher(DType dtype, bool is_wide);

  const std::shared_ptr<const cuda::DeviceContext> device_;
  std::array<std::optional<cuda::TextKernel>, static_cast<std::size_t>(Element::kCount)> copiers_;
  // By dtype, and whether rows are taken by four.
  std::array<std::array<std::optional<cuda::TextKernel>, 2>, 4> finishers_;
};

}  // namespace hocket::matmul
