// Kernels that cuBLAS lacks: copies of rows and columns with gaps, and conversion of sums to 8 or
// 16 bits.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "arrays/matmul/blocks.h"
#include "foundation/cuda/text_kernel.h"

namespace hocket::matmul {

// The indices of a block's rows and columns, as the copy kernel reads them. First come all rows'
// sources, then all rows' targets; the columns follow in the same way.
//
//   | rows from | rows to | columns from | columns to |
std::vector<std::uint32_t> table_of(const std::vector<Run>& rows, const std::vector<Run>& columns);

// A resource of one GPU. One thread uses it, with the GPU's context current. Kernels are loaded on
// first use. Throws DeviceError.
class GpuKernels {
 public:
  explicit GpuKernels(std::shared_ptr<const cuda::DeviceContext> device)
      : device_(std::move(device)) {}

  // `change` is not kToFloat32. `table` is a copy in GPU memory of the result of table_of.
  void copy(const void* table,
            std::size_t rows,
            std::size_t columns,
            Columns<const std::byte> from,
            Columns<std::byte> to,
            DType dtype,
            Change change,
            cuda::Stream stream);
  // See matmul::finish. The sums are float32, and the other numbers have 8 or 16 bits.
  void finish(const Finish& finish, cuda::Stream stream);

 private:
  // Elements as the copy kernel distinguishes them.
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
  // By dtype, and by whether a thread has four rows.
  std::array<std::array<std::optional<cuda::TextKernel>, 2>, 4> finishers_;
};

}  // namespace hocket::matmul
