// Reductions of a few vectors: from left to right, in the accumulation type, rounded once, at the
// end; the bits are those of core/reduce.h (NaNs' payloads apart).
#pragma once

#include <cstdint>

#include "engines/peer/elements.h"
#include "engines/peer/marks.h"
#include "hocket/types.h"

namespace hocket::engines::peer {

// What is told apart when folding, and no more: operations on bits know no type, those of bool are
// operations on bits, sums of complex numbers are sums of their parts.
enum class Form : std::uint8_t {
  kBits,
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kFloat16,
  kBFloat16,
  kFloat32,
  kFloat64,
  kFloat8E4M3,
  kFloat8E5M2,
  kComplex64,
  kComplex128,
};
enum class Operation : std::uint8_t { kSum, kProduct, kMin, kMax, kAnd, kOr, kXor };

// A value: one reduction. Sums are divided by `divisor`.
struct FoldCode {
  Form form = Form::kBits;
  Operation operation = Operation::kAnd;
  std::uint16_t divisor = 1;
};
// For each dtype and op of hocket, where is_defined.
FoldCode fold_code(DType dtype, ReduceOp op, int ranks) noexcept;

namespace fold_detail {

template <typename T>
HOCKET_ANYWHERE T lesser(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a) return a;
    if (b != b) return b;
    // The zero with a sign is the lesser one.
    using Bits = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
    if (a == b) return std::bit_cast<Bits>(a) < 0 ? a : b;
  }
  return b < a ? b : a;
}
template <typename T>
HOCKET_ANYWHERE T greater(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) return -lesser<T>(-a, -b);
  if constexpr (!std::is_floating_point_v<T>) return a < b ? b : a;
}

template <Operation kOperation, typename T>
HOCKET_ANYWHERE T combine(T a, T b) {
  if constexpr (kOperation == Operation::kSum && std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  }
  if constexpr (kOperation == Operation::kSum && !std::is_integral_v<T>) return a + b;
  if constexpr (kOperation == Operation::kProduct) return a * b;
  if constexpr (kOperation == Operation::kMin) return lesser(a, b);
  if constexpr (kOperation == Operation::kMax) return greater(a, b);
  if constexpr (kOperation == Operation::kAnd) return a & b;
  if constexpr (kOperation == Operation::kOr) return a | b;
  if constexpr (kOperation == Operation::kXor) return a ^ b;
}
template <Operation kOperation, typename Real>
HOCKET_ANYWHERE Pair<Real> combine(Pair<Real> a, Pair<Real> b) {
  static_assert(kOperation == Operation::kProduct);
  return {a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
}

// Sums of integers wrap around in the element's own width first.
template <typename T>
HOCKET_ANYWHERE typename Number<T>::Wide divide(typename Number<T>::Wide sum, int divisor) {
  using Wide = typename Number<T>::Wide;
  if constexpr (std::is_integral_v<T>) {
    return static_cast<Wide>(static_cast<T>(sum)) / static_cast<Wide>(divisor);
  } else {
    return sum / static_cast<Wide>(divisor);
  }
}

HOCKET_ANYWHERE Vector truths_of(Vector vector) {
  HOCKET_UNROLL
  for (std::uint32_t& word : vector.word) {
    word |= word >> 4 & 0x0f0f0f0fu;
    word |= word >> 2 & 0x03030303u;
    word |= word >> 1;
    word &= 0x01010101u;
  }
  return vector;
}

template <typename T, Operation kOperation, int kMost>
HOCKET_ANYWHERE Vector fold_numbers(const Vector* v, int n, int divisor) {
  using Stored = typename Number<T>::Stored;
  typename Number<T>::Wide value[Elements<Stored>::kCount];
  const auto first = elements_of<Stored>(v[0]);
  HOCKET_UNROLL
  for (int i = 0; i < Elements<Stored>::kCount; ++i) value[i] = Number<T>::widen(first.at[i]);
  const auto add = [&](const Vector& vector) {
    const auto next = elements_of<Stored>(vector);
    HOCKET_UNROLL
    for (int i = 0; i < Elements<Stored>::kCount; ++i) {
      value[i] = combine<kOperation>(value[i], Number<T>::widen(next.at[i]));
    }
  };
  if constexpr (kMost > 0) {
    HOCKET_UNROLL
    for (int s = 1; s < kMost; ++s) {
      if (s < n) add(v[s]);
    }
  } else {
    for (int s = 1; s < n; ++s) add(v[s]);
  }
  if constexpr (kOperation == Operation::kSum) {
    if (divisor != 1) {
      HOCKET_UNROLL
      for (auto& x : value) x = divide<T>(x, divisor);
    }
  }
  Elements<Stored> result;
  HOCKET_UNROLL
  for (int i = 0; i < Elements<Stored>::kCount; ++i) result.at[i] = Number<T>::narrow(value[i]);
  return vector_of(result);
}

template <Operation kOperation>
HOCKET_ANYWHERE Vector fold_bits(const Vector* v, int n, bool truths) {
  Vector value = truths ? truths_of(v[0]) : v[0];
  for (int s = 1; s < n; ++s) {
    const Vector next = truths ? truths_of(v[s]) : v[s];
    HOCKET_UNROLL
    for (int i = 0; i < 4; ++i) value.word[i] = combine<kOperation>(value.word[i], next.word[i]);
  }
  return value;
}

// The operations of real numbers. Integers' sums and products need no sign but for the division.
template <typename T>
HOCKET_ANYWHERE Vector fold_real(FoldCode code, const Vector* v, int n) {
  switch (code.operation) {
    case Operation::kProduct:
      if constexpr (!std::is_signed_v<T> || !std::is_integral_v<T>) {
        return fold_numbers<T, Operation::kProduct, 0>(v, n, 1);
      }
      return v[0];
    case Operation::kMin:
      return fold_numbers<T, Operation::kMin, 0>(v, n, 1);
    case Operation::kMax:
      return fold_numbers<T, Operation::kMax, 0>(v, n, 1);
    default:
      return fold_numbers<T, Operation::kSum, 0>(v, n, code.divisor);
  }
}

}  // namespace fold_detail

// Folds `n` vectors as `code` says. For kernels that are the same for all codes.
HOCKET_ANYWHERE_APART Vector fold_any(FoldCode code, const Vector* v, int n) {
  using namespace fold_detail;
  switch (code.form) {
    case Form::kBits:
    case Form::kBool: {
      const bool truths = code.form == Form::kBool;
      if (code.operation == Operation::kAnd) return fold_bits<Operation::kAnd>(v, n, truths);
      if (code.operation == Operation::kOr) return fold_bits<Operation::kOr>(v, n, truths);
      return fold_bits<Operation::kXor>(v, n, truths);
    }
    case Form::kInt8:
      return fold_real<std::int8_t>(code, v, n);
    case Form::kInt16:
      return fold_real<std::int16_t>(code, v, n);
    case Form::kInt32:
      return fold_real<std::int32_t>(code, v, n);
    case Form::kInt64:
      return fold_real<std::int64_t>(code, v, n);
    case Form::kUInt8:
      return fold_real<std::uint8_t>(code, v, n);
    case Form::kUInt16:
      return fold_real<std::uint16_t>(code, v, n);
    case Form::kUInt32:
      return fold_real<std::uint32_t>(code, v, n);
    case Form::kUInt64:
      return fold_real<std::uint64_t>(code, v, n);
    case Form::kFloat16:
      return fold_real<float16>(code, v, n);
    case Form::kBFloat16:
      return fold_real<bfloat16>(code, v, n);
    case Form::kFloat32:
      return fold_real<float>(code, v, n);
    case Form::kFloat64:
      return fold_real<double>(code, v, n);
    case Form::kFloat8E4M3:
      return fold_real<float8_e4m3>(code, v, n);
    case Form::kFloat8E5M2:
      return fold_real<float8_e5m2>(code, v, n);
    case Form::kComplex64:
      return fold_numbers<Pair<float>, Operation::kProduct, 0>(v, n, 1);
    case Form::kComplex128:
      return fold_numbers<Pair<double>, Operation::kProduct, 0>(v, n, 1);
  }
  return v[0];
}

// The two kinds of folds that kernels are made for.
struct AnyFold {
  template <int kMost>
  static HOCKET_ANYWHERE Vector apply(FoldCode code, const Vector (&v)[kMost], int n) {
    return fold_any(code, v, n);
  }
};
// The sums, and averages, of the floats that nets are trained in: code of their own.
template <typename T>
struct SumFold {
  template <int kMost>
  static HOCKET_ANYWHERE Vector apply(FoldCode code, const Vector (&v)[kMost], int n) {
    return fold_detail::fold_numbers<T, Operation::kSum, kMost>(v, n, code.divisor);
  }
};

}  // namespace hocket::engines::peer
