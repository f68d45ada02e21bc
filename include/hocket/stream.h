// Streams: queues of work on a GPU, as CUDA, CuPy, PyTorch and JAX have them.
#pragma once

#include <cstdint>

#include "hocket/cplusplus.h"

struct CUstream_st;

namespace hocket {

// A view of somebody's stream, CUDA's own handle: a CUstream or a cudaStream_t. A value; the stream
// must outlive the calls made on it.
class StreamRef {
 public:
  // The legacy default stream.
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
