// Streams: queues of work on a GPU, as in CUDA, CuPy, PyTorch and JAX.
#pragma once

#include <cstdint>

#include "hocket/cplusplus.h"

struct CUstream_st;

namespace hocket {

// A view of a stream: CUDA's own handle, a CUstream or a cudaStream_t. A value; any thread may use
// it. The stream must outlive the calls on it.
class StreamRef {
 public:
  // Makes a view of the legacy default stream.
  constexpr StreamRef() noexcept = default;
  constexpr StreamRef(CUstream_st* handle) noexcept : handle_(handle) {}  // NOLINT: implicit
  static StreamRef from_handle(std::uintptr_t handle) noexcept {
    return reinterpret_cast<CUstream_st*>(handle);
  }

  constexpr CUstream_st* handle() const noexcept { return handle_; }
  constexpr bool operator==(const StreamRef&) const noexcept = default;

 private:
  CUstream_st* handle_ = nullptr;
};

}  // namespace hocket
