// Multiplication of an array in a GPU's memory by a number.
#pragma once

#include <cstddef>
#include <memory>

#include "foundation/cuda/text_kernel.h"

namespace hocket::fft {

// A resource: the kernel, loaded on one GPU. Any thread may use it, with the GPU's context current.
// The constructor throws DeviceError.
class GpuScale {
 public:
  GpuScale(std::shared_ptr<const cuda::DeviceContext> device, bool is_double);

  // Multiplies `count` real numbers, as work of the stream.
  void run(void* data, std::size_t count, double factor, cuda::Stream stream) const;

 private:
  const bool is_double_;
  const cuda::TextKernel kernel_;
};

}  // namespace hocket::fft
