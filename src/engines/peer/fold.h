// Reductions of a few vectors, one from each rank. They combine the vectors from left to right in
// the accumulation type, and round once at the end. The results have the same bits as those of
// foundation/core/reduce.h, except the payloads of NaNs.
#pragma once

#include <cstdint>

#include "engines/peer/kernels/elements.h"
#include "engines/peer/kernels/marks.h"
#include "foundation/core/exact_sum.h"
#include "hocket/types.h"

namespace hocket::engines::peer {

// The number formats that a reduction distinguishes. Bit operations have the form kBits for every
// type. Operations on bools are bit operations on normalized values. Sums of complex numbers have
// the form of their real and imaginary parts.
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
enum class FoldOperation : std::uint8_t { kSum, kProduct, kMin, kMax, kAnd, kOr, kXor };

// Identifies one reduction. A sum is divided by `divisor`, which is 1 except in averages. A value.
struct FoldCode {
  Form form = Form::kBits;
  FoldOperation operation = FoldOperation::kAnd;
  std::uint16_t divisor = 1;
};
// Returns the code for a dtype and operation. `is_defined` must be true for both.
FoldCode fold_code(DType dtype, ReduceOp op, int ranks) noexcept;

namespace fold_detail {

template <typename T>
HOCKET_ANYWHERE T lesser(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    if (a != a) return a;
    if (b != b) return b;
    // The negative zero counts as less than the positive zero.
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

// Combines two numbers. Integers wrap around: they are computed as unsigned, because signed
// overflow is undefined.
template <typename T>
HOCKET_ANYWHERE T combine(FoldOperation operation, T a, T b) {
  switch (operation) {
    case FoldOperation::kProduct:
      if constexpr (std::is_integral_v<T>) {
        using Unsigned = std::make_unsigned_t<T>;
        return static_cast<T>(static_cast<Unsigned>(a) * static_cast<Unsigned>(b));
      } else {
        return a * b;
      }
    case FoldOperation::kMin:
      return lesser(a, b);
    case FoldOperation::kMax:
      return greater(a, b);
    case FoldOperation::kSum:
    case FoldOperation::kAnd:  // not reached, as kOr and kXor: see combine_bits
    case FoldOperation::kOr:
    case FoldOperation::kXor:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    return a + b;
  }
}
// Returns the product of two complex numbers. Their sums use the form of their parts; see Form.
template <typename Real>
HOCKET_ANYWHERE Pair<Real> combine(FoldOperation, Pair<Real> a, Pair<Real> b) {
  return {a.real * b.real - a.imaginary * b.imaginary, a.real * b.imaginary + a.imaginary * b.real};
}
HOCKET_ANYWHERE std::uint32_t combine_bits(FoldOperation operation,
                                           std::uint32_t a,
                                           std::uint32_t b) {
  if (operation == FoldOperation::kAnd) return a & b;
  return operation == FoldOperation::kOr ? a | b : a ^ b;
}

// Divides a sum of floats. Returns sums of other types unchanged, because average_integers computes
// the averages of integers.
template <typename T>
HOCKET_ANYWHERE typename Number<T>::Wide divide(typename Number<T>::Wide sum, int divisor) {
  using Wide = typename Number<T>::Wide;
  if constexpr (std::is_floating_point_v<Wide>) {
    return sum / static_cast<Wide>(divisor);
  } else {
    return sum;
  }
}

// Replaces each byte of a vector by 1 if it is not 0.
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

// Reduces the elements of one `Cell`, which is a part of a vector. value(s) returns the cell of
// source s. There are n sources, at most kMost; any number is allowed if kMost is 0.
template <typename T, int kMost, typename Cell, typename Value>
HOCKET_ANYWHERE Cell fold_cell(FoldOperation operation, int n, int divisor, const Value& value) {
  using Stored = typename Number<T>::Stored;
  constexpr int kCount = static_cast<int>(sizeof(Cell) / sizeof(Stored));
  struct Elements {
    Stored at[kCount];
  };
  typename Number<T>::Wide folded[kCount];
  const auto first = std::bit_cast<Elements>(value(0));
  HOCKET_UNROLL
  for (int i = 0; i < kCount; ++i) folded[i] = Number<T>::widen(first.at[i]);
  const auto add = [&](int s) {
    const auto next = std::bit_cast<Elements>(value(s));
    HOCKET_UNROLL
    for (int i = 0; i < kCount; ++i) {
      folded[i] = combine(operation, folded[i], Number<T>::widen(next.at[i]));
    }
  };
  if constexpr (kMost > 0) {
    HOCKET_UNROLL
    for (int s = 1; s < kMost; ++s) {
      if (s < n) add(s);
    }
  } else {
    HOCKET_KEEP_LOOP
    for (int s = 1; s < n; ++s) add(s);
  }
  if (divisor != 1) {
    HOCKET_UNROLL
    for (auto& x : folded) x = divide<T>(x, divisor);
  }
  Elements result;
  HOCKET_UNROLL
  for (int i = 0; i < kCount; ++i) result.at[i] = Number<T>::narrow(folded[i]);
  return std::bit_cast<Cell>(result);
}

// Reduces whole vectors in registers.
template <typename T, int kMost>
HOCKET_ANYWHERE Vector sum_vectors(const Vector (&v)[kMost], int n, int divisor) {
  return fold_cell<T, kMost, Vector>(FoldOperation::kSum, n, divisor, [&](int s) { return v[s]; });
}

// Averages integers element by element, in a wider type, so that sums do not wrap around.
template <typename T>
HOCKET_ANYWHERE Vector average_integers(const Vector* v, int n, int divisor) {
  Vector result;
  auto* to = reinterpret_cast<std::byte*>(&result);
  HOCKET_KEEP_LOOP
  for (std::uint32_t at = 0; at < kVectorBytes; at += sizeof(T)) {
    core::ExactSum<T> sum;
    HOCKET_KEEP_LOOP
    for (int s = 0; s < n; ++s) {
      T value;
      std::memcpy(&value, reinterpret_cast<const std::byte*>(&v[s]) + at, sizeof(T));
      sum.add(value);
    }
    const T average = sum.divided(divisor);
    std::memcpy(to + at, &average, sizeof(T));
  }
  return result;
}

// Reduces a vector in a loop over its words, or over its elements if an element is larger than a
// word. Loops keep the code small, because there are many combinations of types and operations.
template <typename T>
HOCKET_ANYWHERE Vector fold_words(FoldCode code, const Vector* v, int n) {
  using Stored = typename Number<T>::Stored;
  using Cell = std::conditional_t<(sizeof(Stored) > sizeof(std::uint32_t)), Stored, std::uint32_t>;
  if constexpr (std::is_integral_v<T>) {
    if (code.divisor != 1) return average_integers<T>(v, n, code.divisor);
  }
  Vector result;
  auto* to = reinterpret_cast<std::byte*>(&result);
  HOCKET_KEEP_LOOP
  for (std::uint32_t at = 0; at < kVectorBytes; at += sizeof(Cell)) {
    const Cell cell = fold_cell<T, 0, Cell>(code.operation, n, code.divisor, [&](int s) {
      Cell value;
      std::memcpy(&value, reinterpret_cast<const std::byte*>(&v[s]) + at, sizeof(Cell));
      return value;
    });
    std::memcpy(to + at, &cell, sizeof(Cell));
  }
  return result;
}

HOCKET_ANYWHERE Vector fold_bits(FoldCode code, const Vector* v, int n) {
  const bool truths = code.form == Form::kBool;
  Vector value = truths ? truths_of(v[0]) : v[0];
  HOCKET_KEEP_LOOP
  for (int s = 1; s < n; ++s) {
    const Vector next = truths ? truths_of(v[s]) : v[s];
    HOCKET_UNROLL
    for (int i = 0; i < 4; ++i) {
      value.word[i] = combine_bits(code.operation, value.word[i], next.word[i]);
    }
  }
  return value;
}

}  // namespace fold_detail

// Reduces `n` vectors by any code. The kernels of Folding::kAny use it.
HOCKET_ANYWHERE_APART Vector fold_any(FoldCode code, const Vector* v, int n) {
  using namespace fold_detail;
  switch (code.form) {
    case Form::kBits:
    case Form::kBool:
      return fold_bits(code, v, n);
    case Form::kInt8:
      return fold_words<std::int8_t>(code, v, n);
    case Form::kInt16:
      return fold_words<std::int16_t>(code, v, n);
    case Form::kInt32:
      return fold_words<std::int32_t>(code, v, n);
    case Form::kInt64:
      return fold_words<std::int64_t>(code, v, n);
    case Form::kUInt8:
      return fold_words<std::uint8_t>(code, v, n);
    case Form::kUInt16:
      return fold_words<std::uint16_t>(code, v, n);
    case Form::kUInt32:
      return fold_words<std::uint32_t>(code, v, n);
    case Form::kUInt64:
      return fold_words<std::uint64_t>(code, v, n);
    case Form::kFloat16:
      return fold_words<float16>(code, v, n);
    case Form::kBFloat16:
      return fold_words<bfloat16>(code, v, n);
    case Form::kFloat32:
      return fold_words<float>(code, v, n);
    case Form::kFloat64:
      return fold_words<double>(code, v, n);
    case Form::kFloat8E4M3:
      return fold_words<float8_e4m3>(code, v, n);
    case Form::kFloat8E5M2:
      return fold_words<float8_e5m2>(code, v, n);
    case Form::kComplex64:
      return fold_words<Pair<float>>(code, v, n);
    case Form::kComplex128:
      return fold_words<Pair<double>>(code, v, n);
  }
  return v[0];
}

// Kernels are compiled for two kinds of reductions, AnyFold and SumFold. In both, `apply` reduces n
// vectors, at most kMost. `apply_around` reduces the vectors of `peers` peers, at most kPeers, and
// this rank's vector `own`, which it inserts at the position of `rank`.
template <typename Self>
struct FoldAround {
  template <int kPeers>
  static HOCKET_ANYWHERE Vector apply_around(FoldCode code,
                                             const Vector (&come)[kPeers],
                                             const Vector& own,
                                             std::uint32_t rank,
                                             std::uint32_t peers) {
    Vector v[kPeers + 1];
    HOCKET_UNROLL
    for (int q = 0; q <= kPeers; ++q) {
      const Vector& before = come[q < kPeers ? q : kPeers - 1];
      const Vector& after = come[q > 0 ? q - 1 : 0];
      const auto place = static_cast<std::uint32_t>(q);
      v[q] = place < rank ? before : place > rank ? after : own;
    }
    return Self::apply(code, v, static_cast<int>(peers) + 1);
  }
};
struct AnyFold : FoldAround<AnyFold> {
  template <int kMost>
  static HOCKET_ANYWHERE Vector apply(FoldCode code, const Vector (&v)[kMost], int n) {
    return fold_any(code, v, n);
  }
};
// Specialized code for sums and averages of the float types that neural networks use.
template <typename T>
struct SumFold : FoldAround<SumFold<T>> {
  template <int kMost>
  static HOCKET_ANYWHERE Vector apply(FoldCode code, const Vector (&v)[kMost], int n) {
    return fold_detail::sum_vectors<T>(v, n, code.divisor);
  }
};

}  // namespace hocket::engines::peer
