// Products by Eigen, which consists of headers, so that it is always available.
#include <fmt/format.h>

#include <Eigen/Core>
#include <complex>
#include <type_traits>

#include "arrays/matmul/blas.h"

namespace hocket::matmul {
namespace {

template <typename T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
using Stride = Eigen::OuterStride<>;

Eigen::Index index(std::size_t i) { return static_cast<Eigen::Index>(i); }

template <typename T>
Eigen::Map<const Matrix<T>, 0, Stride> view(Columns<const std::byte> columns,
                                            std::size_t rows,
                                            std::size_t count) {
  return {reinterpret_cast<const T*>(columns.at),
          index(rows),
          index(count),
          Stride(index(columns.stride))};
}

// Calls `f` with the factor as the product uses it: `rows` x `count`.
template <typename T, typename F>
void with_factor(
    Columns<const std::byte> columns, Stored stored, std::size_t rows, std::size_t count, F&& f) {
  switch (stored) {
    case Stored::kPlain:
      return f(view<T>(columns, rows, count));
    case Stored::kTransposed:
      return f(view<T>(columns, count, rows).transpose());
    case Stored::kConjugateTransposed:
      if constexpr (std::is_floating_point_v<T>) {
        return f(view<T>(columns, count, rows).transpose());
      } else {
        return f(view<T>(columns, count, rows).adjoint());
      }
  }
}

template <typename T>
void multiply_as(const LocalProduct& p) {
  Eigen::Map<Matrix<T>, 0, Stride> target(
      reinterpret_cast<T*>(p.target.at), index(p.m), index(p.n), Stride(index(p.target.stride)));
  T alpha{}, beta{};
  if constexpr (std::is_floating_point_v<T>) {
    alpha = static_cast<T>(p.alpha.real());
    beta = static_cast<T>(p.beta.real());
  } else {
    alpha = T(p.alpha);
    beta = T(p.beta);
  }
  if (beta == T(0)) {
    target.setZero();
  } else if (beta != T(1)) {
    target *= beta;
  }
  if (p.k == 0) return;
  with_factor<T>(p.left, p.left_stored, p.m, p.k, [&](const auto& left) {
    with_factor<T>(p.right, p.right_stored, p.k, p.n, [&](const auto& right) {
      target.noalias() += alpha * (left * right);
    });
  });
}

class EigenBlas final : public Blas {
 public:
  const std::string& name() const noexcept override { return name_; }
  void multiply(const LocalProduct& product) const override {
    if (product.m == 0 || product.n == 0) return;
    if (product.dtype == DType::kFloat32) return multiply_as<float>(product);
    if (product.dtype == DType::kFloat64) return multiply_as<double>(product);
    if (product.dtype == DType::kComplex64) return multiply_as<std::complex<float>>(product);
    multiply_as<std::complex<double>>(product);
  }

 private:
  std::string name_ =
      fmt::format("Eigen {}.{}.{}", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION);
};

}  // namespace

std::shared_ptr<Blas> eigen_blas() { return std::make_shared<EigenBlas>(); }

}  // namespace hocket::matmul
