// Copies of boxes within and between GPUs' memory.
#pragma once

#include <memory>

#include "arrays/fft/lay.h"
#include "foundation/cuda/text_kernel.h"

namespace hocket::fft {

// The source of a copy, as seen by the GPU that makes it: its own memory, or another GPU's.
enum class Nearness : bool { kNear, kFar };

// A resource: the kernels, loaded on one GPU. Any thread may use it, with the GPU's context
// current. Throws DeviceError.
class GpuCopy {
 public:
  // `unit` is the size in bytes of the smallest number that is copied: 4, 8 or 16.
  GpuCopy(std::shared_ptr<const cuda::DeviceContext> device, std::size_t unit);

  // Copies as work of the stream. A kernel makes near copies, because the driver's copy engines are
  // slow for rows with gaps. The engines copy long rows from another GPU, because links are slower
  // still.
  void run(const Copy& copy, const void* from, void* to, cuda::Stream stream, Nearness reach) const;

 private:
  struct Planes;
  void run(const Planes& planes, cuda::Stream stream, Nearness reach) const;
  void run_by_driver(const Planes& planes, cuda::Stream stream) const;

  const std::shared_ptr<const cuda::DeviceContext> device_;
  const std::size_t unit_;
  const cuda::TextKernel wide_;                     // for numbers of 16 bytes
  std::unique_ptr<const cuda::TextKernel> narrow_;  // for numbers of `unit` bytes, if that is less
};

}  // namespace hocket::fft
