// cuFFT, found at run time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/cuda/abi.h"

namespace hocket::fft {

// The part of cuFFT's interface that is used. Its values are those of CUDA 12.
namespace cufft {
using Handle = int;
enum class CufftResult : int { kSuccess = 0 };
enum class CufftType : int {
  kRealToComplex = 0x2a,
  kComplexToReal = 0x2c,
  kComplex = 0x29,
  kDoubleToComplex = 0x6a,
  kComplexToDouble = 0x6c,
  kDoubleComplex = 0x69,
};
inline constexpr int kForward = -1, kInverse = 1;
}  // namespace cufft

// A resource: the loaded library. It is immutable, so any thread may use it.
class Cufft {
 public:
  // Loads the library, or the file that HOCKET_CUFFT_LIBRARY names. Throws InvalidArgument if there
  // is none.
  static std::shared_ptr<const Cufft> find(const std::vector<std::string>& folders);

  const std::string& name() const noexcept { return name_; }  // "cuFFT 12.0.0"

  cufft::CufftResult (*create)(cufft::Handle*) = nullptr;
  cufft::CufftResult (*destroy)(cufft::Handle) = nullptr;
  cufft::CufftResult (*make_plan_many)(cufft::Handle,
                                       int rank,
                                       long long* n,
                                       long long* in_embed,
                                       long long in_stride,
                                       long long in_distance,
                                       long long* out_embed,
                                       long long out_stride,
                                       long long out_distance,
                                       cufft::CufftType,
                                       long long batch,
                                       std::size_t* work) = nullptr;
  cufft::CufftResult (*set_stream)(cufft::Handle, cuda::Stream) = nullptr;
  cufft::CufftResult (*exec_c2c)(cufft::Handle, void* in, void* out, int direction) = nullptr;
  cufft::CufftResult (*exec_z2z)(cufft::Handle, void* in, void* out, int direction) = nullptr;
  cufft::CufftResult (*exec_r2c)(cufft::Handle, void* in, void* out) = nullptr;
  cufft::CufftResult (*exec_d2z)(cufft::Handle, void* in, void* out) = nullptr;
  cufft::CufftResult (*exec_c2r)(cufft::Handle, void* in, void* out) = nullptr;
  cufft::CufftResult (*exec_z2d)(cufft::Handle, void* in, void* out) = nullptr;

  // Throws DeviceError: "cuFFT cannot WHAT: CUFFT_ALLOC_FAILED".
  void check(cufft::CufftResult status, std::string_view what) const;

 private:
  Cufft() = default;
  std::string name_;
};

// A resource: one plan's handle; the library outlives it. Throws DeviceError.
class CufftHandle {
 public:
  explicit CufftHandle(const Cufft& cufft);
  ~CufftHandle();
  CufftHandle(CufftHandle&& other) noexcept;
  CufftHandle& operator=(CufftHandle&&) = delete;
  cufft::Handle get() const noexcept { return handle_; }

 private:
  const Cufft* cufft_;
  cufft::Handle handle_{};
};

}  // namespace hocket::fft
