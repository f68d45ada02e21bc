// Copies of a GPU's arrays in host memory, for a call that only the host can make.
#pragma once

#include <memory>
#include <optional>

#include "foundation/cuda/memory.h"
#include "foundation/cuda/stream.h"

namespace hocket::device {

// A resource of the thread that makes the call. The GPU is current during its life. The constructor
// and `finish` wait for the stream, and throw DeviceError.
class HostCopies {
 public:
  // Copies `in` to the host.
  HostCopies(const std::shared_ptr<const cuda::DeviceContext>& gpu,
             ConstArrayView in,
             ArrayView out,
             cuda::Stream stream);

  // The host's copies: one array if the call is in place.
  ConstArrayView in() const noexcept { return in_; }
  ArrayView out() const noexcept { return out_; }
  // Copies `out` back to the GPU.
  void finish();

 private:
  const cuda::DeviceGuard current_;
  const cuda::OutsideCapture outside_;
  const cuda::Driver& driver_;
  const ArrayView on_gpu_;
  const cuda::Stream stream_;
  cuda::HostBuffer in_buffer_;
  std::optional<cuda::HostBuffer> out_buffer_;  // absent: the call is in place
  ConstArrayView in_;
  ArrayView out_;
};

}  // namespace hocket::device
