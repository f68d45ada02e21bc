// The calls that hocket makes. Arguments that do not fit together are refused as by cuBLAS.
#include "arrays/matmul/cublas.h"

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "hocket/types.h"
#include "host_work.h"

using namespace hocket::matmul::cublas;
using hocket::bfloat16;
using hocket::float16;
using hocket::float8_e4m3;
using hocket::float8_e5m2;
using hocket::cuda::Stream;

struct hocket::matmul::cublas::cublasContext {
  Stream stream = nullptr;
};
struct hocket::matmul::cublas::cublasLtMatmulDescOpaque {
  bool is_left_transposed = false;
};
struct hocket::matmul::cublas::cublasLtMatrixLayoutOpaque {
  DataType type;
  std::uint64_t rows, columns;
  std::int64_t stride;
};

namespace {

constexpr Status kInvalidValue{7}, kNotSupported{15};

struct Factor {
  const void* at;
  int stride;
  Transposition op;
  int rows(int rows, int columns) const { return op == Transposition::kNone ? rows : columns; }
};

template <typename S, typename T>
S element(const Factor& factor, int i, int j) {
  if (factor.op != Transposition::kNone) std::swap(i, j);
  const T value =
      static_cast<const T*>(factor.at)[i + static_cast<std::ptrdiff_t>(j) * factor.stride];
  const S wide = static_cast<S>(value);
  if constexpr (!std::is_floating_point_v<S>) {
    if (factor.op == Transposition::kConjugateTranspose) return std::conj(wide);
  }
  return wide;
}

struct Target {
  void* at;
  int stride;
  template <typename T>
  T& element(int i, int j) const {
    return static_cast<T*>(at)[i + static_cast<std::ptrdiff_t>(j) * stride];
  }
};

// S: of the sums and the scales; T, B: of the factors; R: of the target.
template <typename S, typename T, typename R = T, typename B = T>
Status multiply(Handle handle,
                int m,
                int n,
                int k,
                const void* alpha_at,
                const Factor& a,
                const Factor& b,
                const void* beta_at,
                const Target& c) {
  if (m < 0 || n < 0 || k < 0 || a.stride < std::max(1, a.rows(m, k)) ||
      b.stride < std::max(1, b.rows(k, n)) || c.stride < std::max(1, m)) {
    return kInvalidValue;
  }
  const S alpha = *static_cast<const S*>(alpha_at), beta = *static_cast<const S*>(beta_at);
  fake::put_on(handle->stream, [=] {
    for (int j = 0; j < n; ++j) {
      for (int i = 0; i < m; ++i) {
        S sum{};
        for (int l = 0; l < k; ++l) sum += element<S, T>(a, i, l) * element<S, B>(b, l, j);
        sum *= alpha;
        R& target = c.element<R>(i, j);
        if (beta != S(0)) sum += beta * static_cast<S>(target);
        target = static_cast<R>(sum);
      }
    }
  });
  return Status::kSuccess;
}

template <typename T>
Status add(Handle handle,
           Transposition op_a,
           Transposition op_b,
           int m,
           int n,
           const void* alpha_at,
           const void* a,
           int lda,
           const void* beta_at,
           const void* b,
           int ldb,
           void* c,
           int ldc) {
  const Factor left{a, lda, op_a}, right{b, ldb, op_b};
  if (m < 0 || n < 0 || lda < std::max(1, left.rows(m, n)) || ldb < std::max(1, right.rows(m, n)) ||
      ldc < std::max(1, m)) {
    return kInvalidValue;
  }
  const T alpha = *static_cast<const T*>(alpha_at), beta = *static_cast<const T*>(beta_at);
  const Target target{c, ldc};
  fake::put_on(handle->stream, [=] {
    for (int j = 0; j < n; ++j) {
      for (int i = 0; i < m; ++i) {
        T sum{};
        if (alpha != T(0)) sum += alpha * element<T, T>(left, i, j);
        if (beta != T(0)) sum += beta * element<T, T>(right, i, j);
        target.element<T>(i, j) = sum;
      }
    }
  });
  return Status::kSuccess;
}

}  // namespace

extern "C" {

Status cublasCreate_v2(Handle* handle) {
  *handle = new cublasContext;
  return Status::kSuccess;
}
Status cublasDestroy_v2(Handle handle) {
  delete handle;
  return Status::kSuccess;
}
Status cublasSetStream_v2(Handle handle, Stream stream) {
  handle->stream = stream;
  return Status::kSuccess;
}
Status cublasGetVersion_v2(Handle, int* version) {
  *version = 130100;
  return Status::kSuccess;
}

Status cublasGemmEx(Handle handle,
                    Transposition op_a,
                    Transposition op_b,
                    int m,
                    int n,
                    int k,
                    const void* alpha,
                    const void* a,
                    DataType a_type,
                    int lda,
                    const void* b,
                    DataType b_type,
                    int ldb,
                    const void* beta,
                    void* c,
                    DataType c_type,
                    int ldc,
                    ComputeType compute,
                    int) {
  if (a_type != b_type) return kNotSupported;
  const auto as = [&]<typename S, typename T, typename R>(ComputeType wanted) {
    if (compute != wanted) return kNotSupported;
    return multiply<S, T, R>(
        handle, m, n, k, alpha, {a, lda, op_a}, {b, ldb, op_b}, beta, {c, ldc});
  };
  constexpr auto kSingle = ComputeType::kFloat32, kDouble = ComputeType::kFloat64;
  using C = std::complex<float>;
  using Z = std::complex<double>;
  if (a_type == DataType::kFloat16 || a_type == DataType::kBFloat16) {
    const bool is_brain = a_type == DataType::kBFloat16;
    if (c_type == DataType::kFloat32) {
      return is_brain ? as.operator()<float, bfloat16, float>(kSingle)
                      : as.operator()<float, float16, float>(kSingle);
    }
    if (c_type != a_type) return kNotSupported;
    return is_brain ? as.operator()<float, bfloat16, bfloat16>(kSingle)
                    : as.operator()<float, float16, float16>(kSingle);
  }
  if (c_type != a_type) return kNotSupported;
  switch (a_type) {
    case DataType::kFloat32:
      return as.operator()<float, float, float>(kSingle);
    case DataType::kFloat64:
      return as.operator()<double, double, double>(kDouble);
    case DataType::kComplex64:
      return as.operator()<C, C, C>(kSingle);
    case DataType::kComplex128:
      return as.operator()<Z, Z, Z>(kDouble);
    case DataType::kFloat16:
    case DataType::kBFloat16:
    case DataType::kFloat8E4M3:
    case DataType::kFloat8E5M2:
      break;
  }
  return kNotSupported;
}

#define FAKE_GEAM(NAME, TYPE)                                                        \
  Status NAME(Handle handle,                                                         \
              Transposition op_a,                                                    \
              Transposition op_b,                                                    \
              int m,                                                                 \
              int n,                                                                 \
              const void* alpha,                                                     \
              const void* a,                                                         \
              int lda,                                                               \
              const void* beta,                                                      \
              const void* b,                                                         \
              int ldb,                                                               \
              void* c,                                                               \
              int ldc) {                                                             \
    return add<TYPE>(handle, op_a, op_b, m, n, alpha, a, lda, beta, b, ldb, c, ldc); \
  }
FAKE_GEAM(cublasSgeam, float)
FAKE_GEAM(cublasDgeam, double)
FAKE_GEAM(cublasCgeam, std::complex<float>)
FAKE_GEAM(cublasZgeam, std::complex<double>)
#undef FAKE_GEAM

Status cublasLtMatmulDescCreate(Description* description, ComputeType compute, DataType scale) {
  if (compute != ComputeType::kFloat32 || scale != DataType::kFloat32) return kNotSupported;
  *description = new cublasLtMatmulDescOpaque;
  return Status::kSuccess;
}
Status cublasLtMatmulDescDestroy(Description description) {
  delete description;
  return Status::kSuccess;
}
Status cublasLtMatmulDescSetAttribute(Description description,
                                      Attribute attribute,
                                      const void* value,
                                      std::size_t bytes) {
  int number = 0;
  if (attribute != Attribute::kLeftTransposition || bytes != sizeof number) return kInvalidValue;
  std::memcpy(&number, value, bytes);
  description->is_left_transposed = number == static_cast<int>(Transposition::kTranspose);
  return Status::kSuccess;
}
Status cublasLtMatrixLayoutCreate(
    Layout* layout, DataType type, std::uint64_t rows, std::uint64_t columns, std::int64_t stride) {
  *layout = new cublasLtMatrixLayoutOpaque{type, rows, columns, stride};
  return Status::kSuccess;
}
Status cublasLtMatrixLayoutDestroy(Layout layout) {
  delete layout;
  return Status::kSuccess;
}

// Supports only factors of 8 bits, under the same conditions as a GPU.
Status cublasLtMatmul(Handle handle,
                      Description description,
                      const void* alpha,
                      const void* a,
                      Layout a_layout,
                      const void* b,
                      Layout b_layout,
                      const void* beta,
                      const void* c,
                      Layout,
                      void* d,
                      Layout d_layout,
                      const void*,
                      void* workspace,
                      std::size_t workspace_bytes,
                      Stream stream) {
  const auto is_round = [](std::uint64_t number) { return number % 16 == 0; };
  const auto fits = [&](const void* at, const Layout& layout) {
    return is_round(reinterpret_cast<std::uintptr_t>(at)) && is_round(layout->rows) &&
           is_round(static_cast<std::uint64_t>(layout->stride));
  };
  if (!description->is_left_transposed || !fits(a, a_layout) || !fits(b, b_layout) ||
      !fits(d, d_layout) || c != d || d_layout->type != DataType::kFloat32 ||
      workspace == nullptr || workspace_bytes == 0) {
    return kNotSupported;
  }
  cublasContext on{stream};
  const auto as = [&]<typename A, typename B>() {
    return multiply<float, A, float, B>(
        &on,
        static_cast<int>(d_layout->rows),
        static_cast<int>(d_layout->columns),
        static_cast<int>(a_layout->rows),
        alpha,
        {a, static_cast<int>(a_layout->stride), Transposition::kTranspose},
        {b, static_cast<int>(b_layout->stride), Transposition::kNone},
        beta,
        {d, static_cast<int>(d_layout->stride)});
  };
  (void)handle;
  constexpr auto kE4M3 = DataType::kFloat8E4M3, kE5M2 = DataType::kFloat8E5M2;
  if (a_layout->type == kE4M3 && b_layout->type == kE4M3) {
    return as.operator()<float8_e4m3, float8_e4m3>();
  }
  if (a_layout->type == kE4M3 && b_layout->type == kE5M2) {
    return as.operator()<float8_e4m3, float8_e5m2>();
  }
  if (a_layout->type == kE5M2 && b_layout->type == kE4M3) {
    return as.operator()<float8_e5m2, float8_e4m3>();
  }
  return kNotSupported;
}

}  // extern "C"
