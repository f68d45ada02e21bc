// A BLAS with 64-bit indices and the corresponding names. Built a second time, its products are
// wrong, as in releases that do not know a new processor.
#include <complex>
#include <cstdint>

namespace {

using Index = std::int64_t;
constexpr int kByColumns = 102, kPlain = 111, kConjugate = 113;

template <typename T>
T conjugated(T value) {
  return value;
}
template <typename T>
std::complex<T> conjugated(std::complex<T> value) {
  return std::conj(value);
}

// Supports only the order of arguments that hocket uses; other calls do nothing.
template <typename T>
void multiply(int order,
              int left_op,
              int right_op,
              Index m,
              Index n,
              Index k,
              T alpha,
              const void* left,
              Index left_stride,
              const void* right,
              Index right_stride,
              T beta,
              void* target,
              Index stride) {
  if (order != kByColumns) return;
  const auto at = [](const void* x, int op, Index i, Index j, Index step) {
    const T value = static_cast<const T*>(x)[op == kPlain ? i + j * step : j + i * step];
    return op == kConjugate ? conjugated(value) : value;
  };
  for (Index j = 0; j < n; ++j) {
    for (Index i = 0; i < m; ++i) {
      T sum{};
      for (Index l = 0; l < k; ++l) {
        sum += at(left, left_op, i, l, left_stride) * at(right, right_op, l, j, right_stride);
      }
#ifdef HOCKET_FAKE_BLAS_WRONG
      if (i == 91 && j == 64) sum += T(1);
#endif
      T& out = static_cast<T*>(target)[i + j * stride];
      out = alpha * sum + (beta == T(0) ? T(0) : beta * out);
    }
  }
}

template <typename T>
T number(const void* at) {
  return *static_cast<const T*>(at);
}

}  // namespace

extern "C" {

char* openblas_get_config() {
  static char text[] = "FakeBLAS 1.2 USE64BITINT";
  return text;
}

void cblas_sgemm64_(int order,
                    int a_op,
                    int b_op,
                    Index m,
                    Index n,
                    Index k,
                    float alpha,
                    const void* a,
                    Index a_stride,
                    const void* b,
                    Index b_stride,
                    float beta,
                    void* c,
                    Index c_stride) {
  multiply<float>(order, a_op, b_op, m, n, k, alpha, a, a_stride, b, b_stride, beta, c, c_stride);
}
void cblas_dgemm64_(int order,
                    int a_op,
                    int b_op,
                    Index m,
                    Index n,
                    Index k,
                    double alpha,
                    const void* a,
                    Index a_stride,
                    const void* b,
                    Index b_stride,
                    double beta,
                    void* c,
                    Index c_stride) {
  multiply<double>(order, a_op, b_op, m, n, k, alpha, a, a_stride, b, b_stride, beta, c, c_stride);
}
void cblas_cgemm64_(int order,
                    int a_op,
                    int b_op,
                    Index m,
                    Index n,
                    Index k,
                    const void* alpha,
                    const void* a,
                    Index a_stride,
                    const void* b,
                    Index b_stride,
                    const void* beta,
                    void* c,
                    Index c_stride) {
  using T = std::complex<float>;
  multiply<T>(order,
              a_op,
              b_op,
              m,
              n,
              k,
              number<T>(alpha),
              a,
              a_stride,
              b,
              b_stride,
              number<T>(beta),
              c,
              c_stride);
}
void cblas_zgemm64_(int order,
                    int a_op,
                    int b_op,
                    Index m,
                    Index n,
                    Index k,
                    const void* alpha,
                    const void* a,
                    Index a_stride,
                    const void* b,
                    Index b_stride,
                    const void* beta,
                    void* c,
                    Index c_stride) {
  using T = std::complex<double>;
  multiply<T>(order,
              a_op,
              b_op,
              m,
              n,
              k,
              number<T>(alpha),
              a,
              a_stride,
              b,
              b_stride,
              number<T>(beta),
              c,
              c_stride);
}

}  // extern "C"
