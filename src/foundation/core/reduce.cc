#include "foundation/core/reduce.h"

#include <fmt/format.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <algorithm>
#include <complex>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "foundation/core/averages.h"
#include "foundation/core/dispatch.h"
#include "foundation/core/exact_sum.h"
#include "foundation/core/kernels.h"
#include "hocket/error.h"

namespace hocket::core {
namespace {

template <typename T>
concept SmallFloat = std::same_as<T, float16> || std::same_as<T, bfloat16> ||
                     std::same_as<T, float8_e4m3> || std::same_as<T, float8_e5m2>;
template <typename T>
concept Integer = std::integral<T> && !std::same_as<T, bool>;
template <typename T>
concept Complex = std::same_as<T, std::complex<float>> || std::same_as<T, std::complex<double>>;

template <typename T>
T element(const void* array, std::size_t i) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(array) + i * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void set_element(void* array, std::size_t i, T value) {
  std::memcpy(static_cast<std::byte*>(array) + i * sizeof(T), &value, sizeof(T));
}

// The product of two complex numbers. std::complex's operator repairs NaNs, which is slow and not
// required here.
template <Complex T>
T product(T a, T b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

template <Complex T>
void complex_product(void* const* outs,
                     int n_outs,
                     const void* const* sources,
                     int n_sources,
                     std::size_t count,
                     int /*average_over*/) {
  for (std::size_t i = 0; i < count; ++i) {
    T value = element<T>(sources[0], i);
    for (int s = 1; s < n_sources; ++s) value = product(value, element<T>(sources[s], i));
    set_element(outs[0], i, value);
  }
  copy_to_others(outs, n_outs, count * sizeof(T));
}

// Computes averages of integers, block by block. A block reads all sources before it writes,
// because an out may be a source.
template <Integer T>
void integer_average(void* const* outs,
                     int n_outs,
                     const void* const* sources,
                     int n_sources,
                     std::size_t count,
                     int average_over) {
  constexpr std::size_t kBlock = 256;
  for (std::size_t at = 0; at < count; at += kBlock) {
    const std::size_t length = std::min(kBlock, count - at);
    ExactSum<T> sums[kBlock];
    for (int s = 0; s < n_sources; ++s) {
      for (std::size_t i = 0; i < length; ++i) sums[i].add(element<T>(sources[s], at + i));
    }
    for (std::size_t i = 0; i < length; ++i) {
      set_element(outs[0], at + i, sums[i].divided(average_over));
    }
  }
  copy_to_others(outs, n_outs, count * sizeof(T));
}

template <Integer T>
void widen_for_average(void* out, const void* in, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const T value = element<T>(in, i);
    if constexpr (sizeof(T) == 8) {
      const ExactSum<T> sum(value);
      set_element(
          out,
          i,
          std::complex<double>(static_cast<double>(sum.high()), static_cast<double>(sum.low())));
    } else {
      set_element(out, i, static_cast<std::int64_t>(value));
    }
  }
}

template <Integer T>
ExactSum<T> sum_in_halves(std::complex<double> halves) {
  return {static_cast<std::int64_t>(halves.real()), static_cast<std::int64_t>(halves.imag())};
}

template <Integer T>
void narrow_average(void* out, const void* in, std::size_t count, int average_over) {
  for (std::size_t i = 0; i < count; ++i) {
    if constexpr (sizeof(T) == 8) {
      const auto sum = sum_in_halves<T>(element<std::complex<double>>(in, i));
      set_element(out, i, sum.divided(average_over));
    } else {
      set_element(out, i, ExactSum<T>(element<std::int64_t>(in, i)).divided(average_over));
    }
  }
}

template <typename T>
ReduceKernel kernel_of(ReduceOp op, Stores stores) {
  if constexpr (Integer<T>) {
    if (op == ReduceOp::kAvg) return &integer_average<T>;
    if (op == ReduceOp::kMin || op == ReduceOp::kMax) return extremes_kernel<T>(op, stores);
    return wrapping_kernel<std::make_unsigned_t<T>>(op, stores);
  } else {
    const ReduceKernel kernel = vector_kernel<T>(op, stores);
    if constexpr (Complex<T>) {
      if (kernel == nullptr) return &complex_product<T>;  // on targets without vectors
    }
    return kernel;
  }
}

}  // namespace

ReduceKernel reduce_kernel(DType dtype, ReduceOp op, Stores stores) {
  if (!is_defined(op, dtype)) {
    throw InvalidArgument(
        fmt::format("{} has no meaning on elements of {}", name_of(op), name_of(dtype)));
  }
  return dispatch(dtype, [&]<typename T>() { return kernel_of<T>(op, stores); });
}

void add(void* out, const void* a, const void* b, std::size_t count, DType dtype) {
  const void* const sources[] = {a, b};
  reduce(out, sources, 2, count, dtype, ReduceOp::kSum, 1, Stores::kCached);
}

void copy_to_others(void* const* outs, int n_outs, std::size_t bytes) {
  for (int i = 1; i < n_outs; ++i) copy(outs[i], outs[0], bytes, Stores::kCached);
}

void copy(void* out, const void* in, std::size_t bytes, Stores stores) {
  if (bytes == 0) return;  // the pointers may be null, which memcpy does not allow
  if (stores == Stores::kCached) {
    std::memcpy(out, in, bytes);
    return;
  }
  stream(out, in, bytes);
  stream_fence();
}

bool copies_by_itself() noexcept {
#if defined(__x86_64__)
  static const bool does = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & 1U << 4) != 0;
  }();
  return does;
#else
  return false;
#endif
}

void widen(void* out, const void* in, std::size_t count, DType from) {
  dispatch(from, [&]<typename T>() {
    if constexpr (SmallFloat<T>) {
      widen_small<T>(out, in, count);
    } else {
      copy(out, in, count * sizeof(T), Stores::kCached);
    }
  });
}

void widen(void* out, const void* in, std::size_t count, DType from, ReduceOp op) {
  if (op != ReduceOp::kAvg) return widen(out, in, count, from);
  dispatch(from, [&]<typename T>() {
    if constexpr (Integer<T>) {
      widen_for_average<T>(out, in, count);
    } else {
      widen(out, in, count, from);
    }
  });
}

void narrow(void* out, const void* in, std::size_t count, DType to, ReduceOp op, int average_over) {
  dispatch(to, [&]<typename T>() {
    const int divisor = op == ReduceOp::kAvg ? average_over : 1;
    if constexpr (SmallFloat<T>) {
      return narrow_small<T>(out, in, count, static_cast<float>(divisor));
    } else if constexpr (Integer<T>) {
      if (op == ReduceOp::kAvg) return narrow_average<T>(out, in, count, divisor);
    }
    if (divisor != 1) {
      reduce(out, &in, 1, count, to, ReduceOp::kAvg, divisor, Stores::kCached);
    } else if (out != in) {
      copy(out, in, count * sizeof(T), Stores::kCached);
    }
  });
}

}  // namespace hocket::core
