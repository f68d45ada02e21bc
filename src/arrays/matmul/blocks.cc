#include "arrays/matmul/blocks.h"

#include <complex>
#include <cstring>
#include <type_traits>

namespace hocket::matmul {
namespace {

template <typename T>
constexpr bool kIsFloat8 = std::is_same_v<T, float8_e4m3> || std::is_same_v<T, float8_e5m2>;
template <typename T>
constexpr bool kIsNarrow =
    kIsFloat8<T> || std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

// Rounds a sum to an element of the result.
template <typename T, typename S>
T rounded(S value) {
  if constexpr (kIsFloat8<T>) {
    const S largest = std::is_same_v<T, float8_e4m3> ? 448 : 57344;
    // Comparisons with NaN are false, so NaN stays.
    if (value > largest) value = largest;
    if (value < -largest) value = -largest;
  }
  return static_cast<T>(value);
}

template <typename From, typename To, typename F>
void each_run(const std::vector<Run>& rows,
              const std::vector<Run>& columns,
              Columns<const std::byte> from,
              Columns<std::byte> to,
              F&& copy) {
  const auto* source = reinterpret_cast<const From*>(from.at);
  auto* target = reinterpret_cast<To*>(to.at);
  for (const Run& column : columns) {
    for (std::size_t j = 0; j < column.length; ++j) {
      const From* in = source + (column.from + j) * from.stride;
      To* out = target + (column.to + j) * to.stride;
      for (const Run& row : rows) copy(out + row.to, in + row.from, row.length);
    }
  }
}

template <typename T>
void copy_as(const std::vector<Run>& rows,
             const std::vector<Run>& columns,
             Columns<const std::byte> from,
             Columns<std::byte> to,
             Change change) {
  if constexpr (kIsNarrow<T>) {
    if (change == Change::kToFloat32) {
      return each_run<T, float>(
          rows, columns, from, to, [](float* out, const T* in, std::size_t count) {
            for (std::size_t i = 0; i < count; ++i) out[i] = in[i];
          });
    }
  }
  if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
    if (change == Change::kConjugate) {
      return each_run<T, T>(rows, columns, from, to, [](T* out, const T* in, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) out[i] = std::conj(in[i]);
      });
    }
  }
  each_run<T, T>(rows, columns, from, to, [](T* out, const T* in, std::size_t count) {
    if (count > 0) std::memcpy(static_cast<void*>(out), in, count * sizeof(T));
  });
}

template <typename S, typename T>
void finish_as(const Finish& f, S alpha, S beta) {
  for (std::size_t j = 0; j < f.columns; ++j) {
    const S* in = reinterpret_cast<const S*>(f.sum.at) + j * f.sum.stride;
    T* out = reinterpret_cast<T*>(f.target.at) + j * f.target.stride;
    if (f.added.at == nullptr) {
      for (std::size_t i = 0; i < f.rows; ++i) out[i] = rounded<T>(alpha * in[i]);
      continue;
    }
    const T* more = reinterpret_cast<const T*>(f.added.at) + j * f.added.stride;
    for (std::size_t i = 0; i < f.rows; ++i) {
      out[i] = rounded<T>(alpha * in[i] + beta * static_cast<S>(more[i]));
    }
  }
}

}  // namespace

void copy_block(const std::vector<Run>& rows,
                const std::vector<Run>& columns,
                Columns<const std::byte> from,
                Columns<std::byte> to,
                DType dtype,
                Change change) {
  if (dtype == DType::kFloat8E4M3) return copy_as<float8_e4m3>(rows, columns, from, to, change);
  if (dtype == DType::kFloat8E5M2) return copy_as<float8_e5m2>(rows, columns, from, to, change);
  if (dtype == DType::kFloat16) return copy_as<float16>(rows, columns, from, to, change);
  if (dtype == DType::kBFloat16) return copy_as<bfloat16>(rows, columns, from, to, change);
  if (dtype == DType::kFloat32) return copy_as<float>(rows, columns, from, to, change);
  if (dtype == DType::kFloat64) return copy_as<double>(rows, columns, from, to, change);
  if (dtype == DType::kComplex64) {
    return copy_as<std::complex<float>>(rows, columns, from, to, change);
  }
  copy_as<std::complex<double>>(rows, columns, from, to, change);
}

void finish(const Finish& f) {
  const auto as = [&]<typename S, typename T>() {
    if constexpr (std::is_same_v<S, std::complex<float>> ||
                  std::is_same_v<S, std::complex<double>>) {
      finish_as<S, T>(f, S(f.alpha), S(f.beta));
    } else {
      finish_as<S, T>(f, static_cast<S>(f.alpha.real()), static_cast<S>(f.beta.real()));
    }
  };
  if (f.sum_dtype == DType::kFloat64) return as.operator()<double, double>();
  if (f.sum_dtype == DType::kComplex64) {
    return as.operator()<std::complex<float>, std::complex<float>>();
  }
  if (f.sum_dtype == DType::kComplex128) {
    return as.operator()<std::complex<double>, std::complex<double>>();
  }
  if (f.dtype == DType::kFloat8E4M3) return as.operator()<float, float8_e4m3>();
  if (f.dtype == DType::kFloat8E5M2) return as.operator()<float, float8_e5m2>();
  if (f.dtype == DType::kFloat16) return as.operator()<float, float16>();
  if (f.dtype == DType::kBFloat16) return as.operator()<float, bfloat16>();
  as.operator()<float, float>();
}

}  // namespace hocket::matmul
