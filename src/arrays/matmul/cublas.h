// cuBLAS, found at run time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "foundation/cuda/abi.h"

namespace hocket::matmul {

// The part of cuBLAS's interface that is used. Its values are those of CUDA 12.
namespace cublas {
using Handle = struct cublasContext*;
enum class Status : int { kSuccess = 0 };
enum class Transposition : int { kNone = 0, kTranspose = 1, kConjugateTranspose = 2 };
enum class DataType : int {
  kFloat32 = 0,
  kFloat64 = 1,
  kFloat16 = 2,
  kComplex64 = 4,
  kComplex128 = 5,
  kBFloat16 = 14,
  kFloat8E4M3 = 28,
  kFloat8E5M2 = 29,
};
enum class ComputeType : int { kFloat32 = 68, kFloat64 = 70 };
inline constexpr int kDefaultAlgorithm = -1;
// Types of cuBLASLt, which multiplies factors of 8 bits.
using Description = struct cublasLtMatmulDescOpaque*;
using Layout = struct cublasLtMatrixLayoutOpaque*;
enum class Attribute : int { kLeftTransposition = 3 };

// C = alpha op(A) + beta op(B). alpha and beta are passed by address, in host memory.
using Geam = Status (*)(Handle,
                        Transposition,
                        Transposition,
                        int m,
                        int n,
                        const void* alpha,
                        const void* a,
                        int lda,
                        const void* beta,
                        const void* b,
                        int ldb,
                        void* c,
                        int ldc);
}  // namespace cublas

// A resource: the loaded library. It is immutable, so any thread may use it.
class Cublas {
 public:
  // Loads the library, or the file that HOCKET_CUBLAS_LIBRARY names. Throws InvalidArgument if
  // there is none.
  static std::shared_ptr<const Cublas> find(const std::vector<std::string>& folders);

  cublas::Status (*create)(cublas::Handle*) = nullptr;
  cublas::Status (*destroy)(cublas::Handle) = nullptr;
  cublas::Status (*set_stream)(cublas::Handle, cuda::Stream) = nullptr;
  cublas::Status (*get_version)(cublas::Handle, int* version) = nullptr;
  cublas::Status (*gemm)(cublas::Handle,
                         cublas::Transposition,
                         cublas::Transposition,
                         int m,
                         int n,
                         int k,
                         const void* alpha,
                         const void* a,
                         cublas::DataType,
                         int lda,
                         const void* b,
                         cublas::DataType,
                         int ldb,
                         const void* beta,
                         void* c,
                         cublas::DataType,
                         int ldc,
                         cublas::ComputeType,
                         int algorithm) = nullptr;
  cublas::Geam geam_float = nullptr, geam_double = nullptr, geam_complex_float = nullptr,
               geam_complex_double = nullptr;

  // Functions of cuBLASLt, which comes with cuBLAS and takes its handles; null if it is too old.
  bool has_lt() const noexcept { return lt_multiply != nullptr; }
  cublas::Status (*lt_describe)(cublas::Description*,
                                cublas::ComputeType,
                                cublas::DataType scale) = nullptr;
  cublas::Status (*lt_forget)(cublas::Description) = nullptr;
  cublas::Status (*lt_set)(cublas::Description,
                           cublas::Attribute,
                           const void* value,
                           std::size_t bytes) = nullptr;
  cublas::Status (*lt_lay)(cublas::Layout*,
                           cublas::DataType,
                           std::uint64_t rows,
                           std::uint64_t columns,
                           std::int64_t stride) = nullptr;
  cublas::Status (*lt_forget_layout)(cublas::Layout) = nullptr;
  cublas::Status (*lt_multiply)(cublas::Handle,
                                cublas::Description,
                                const void* alpha,
                                const void* a,
                                cublas::Layout,
                                const void* b,
                                cublas::Layout,
                                const void* beta,
                                const void* c,
                                cublas::Layout,
                                void* d,
                                cublas::Layout,
                                const void* algorithm,
                                void* workspace,
                                std::size_t workspace_bytes,
                                cuda::Stream) = nullptr;

  // Throws DeviceError: "cuBLAS cannot WHAT: CUBLAS_STATUS_ALLOC_FAILED".
  void check(cublas::Status status, std::string_view what) const;

 private:
  Cublas() = default;
};

// A resource: one plan's handle, in the context that is current when it is made. Throws
// DeviceError.
class CublasHandle {
 public:
  explicit CublasHandle(std::shared_ptr<const Cublas> cublas);
  ~CublasHandle();
  CublasHandle(const CublasHandle&) = delete;
  CublasHandle& operator=(const CublasHandle&) = delete;
  cublas::Handle get() const noexcept { return handle_; }
  const Cublas& library() const noexcept { return *cublas_; }
  std::string name() const;  // "cuBLAS 13.1.0"

 private:
  const std::shared_ptr<const Cublas> cublas_;
  cublas::Handle handle_{};
};

}  // namespace hocket::matmul
