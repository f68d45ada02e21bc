// Multiplication of an array in a GPU's memory by a number.
#pragma once

#include <cstddef>
#include <memory>

#include "cuda/context.h"

namespace hocket::fft {

// A resource: the kernel, loaded on one GPU. Any thread, with the GPU's context current. Making it
// throws DeviceError.
class GpuScale {
 public:
  GpuScale(std::shared_ptr<const cuda::DeviceContext> device, bool is_double);
  ~GpuScale();
  GpuScale(const GpuScale&) = delete;
  GpuScale& operator=(const GpuScale&) = delete;

  // `count` reals, as work of the stream.
  void run(void* data, std::size_t count, double factor, cuda::Stream stream) const;

 private:
  const std::shared_ptr<const cuda::DeviceContext> device_;
  const bool is_double_;
  cuda::Module module_ = nullptr;
  cuda::Function function_ = nullptr;
};

}  // namespace hocket::fft
