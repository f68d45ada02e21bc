// Copies of boxes within and between GPUs' memory.
#pragma once

#include <memory>

#include "arrays/fft/lay.h"
#include "foundation/cuda/text_kernel.h"

namespace hocket::fft {

// Where a copy comes from, as the GPU that makes it sees it.
enum class Nearness : bool { kNear, kFar };

// A resource: the kernels, loaded on one GPU. Any thread, with the GPU's context current. Throws
// DeviceError.
class GpuCopy {
 public:
  // `unit`: bytes of the smallest number that is copied: 4, 8 or 16.
  GpuCopy(std::shared_ptr<const cuda::DeviceContext> device, std::size_t unit);

  // As work of the stream. A kernel copies what is near, as the driver's engines for rows that lie
  // apart are slower than memory; long rows from afar are theirs, as links are slower still.
  void run(const Copy& copy, const void* from, void* to, cuda::Stream stream, Nearness reach) const;

 private:
  struct Planes;
  void run(const Planes& planes, cuda::Stream stream, Nearness reach) const;
  void run_by_driver(const Planes& planes, cuda::Stream stream) const;

  const std::shared_ptr<const cuda::DeviceContext> device_;
  const std::size_t unit_;
  const cuda::TextKernel wide_;                     // of 16 bytes
  std::unique_ptr<const cuda::TextKernel> narrow_;  // of `unit`, where that is less
};

}  // namespace hocket::fft
