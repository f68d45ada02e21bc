// The inputs of ranks, and the expected results of reductions. It is plain scalar code that shares
// only types with the library.
#pragma once

#include <cmath>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <type_traits>

#include "hocket/types.h"

namespace hocket::conformance {

enum class Data {
  kRandom,   // any integers; floats in [-2, 2): results depend on order and rounding, to the last
             // bit
  kExact,    // small whole numbers: results are exact, and known without any order
  kSpecial,  // floats: small whole numbers, and now and then NaN, an infinity, a zero of either
             // sign
};

constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

template <typename T>
concept SmallFloat = std::same_as<T, float16> || std::same_as<T, bfloat16> ||
                     std::same_as<T, float8_e4m3> || std::same_as<T, float8_e5m2>;
template <typename T>
concept Complex = std::same_as<T, std::complex<float>> || std::same_as<T, std::complex<double>>;

// The whole number behind an exact element: 0, 1 or 2; for products 1 or 2.
inline int exact_number(std::uint64_t seed, int rank, std::size_t index, ReduceOp op) {
  const std::uint64_t h = mix(seed ^ mix(static_cast<std::uint64_t>(rank) << 40 ^ index));
  return op == ReduceOp::kProduct ? static_cast<int>(h % 8 == 0) + 1 : static_cast<int>(h % 3);
}

template <typename T>
T from_random(std::uint64_t h) {
  if constexpr (std::same_as<T, bool>) {
    return (h & 1) != 0;
  } else if constexpr (std::integral<T>) {
    return static_cast<T>(h);
  } else if constexpr (Complex<T>) {
    using Real = typename T::value_type;
    return {from_random<Real>(h), from_random<Real>(mix(h))};
  } else {
    const auto whole = static_cast<std::int32_t>(h >> 40) - (1 << 23);  // [-2^23, 2^23)
    return static_cast<T>(static_cast<float>(whole) / static_cast<float>(1 << 22));
  }
}

template <typename T>
T from_specials(std::uint64_t h) {
  if constexpr (Complex<T>) {
    using Real = typename T::value_type;
    return {from_specials<Real>(h), from_specials<Real>(mix(h))};
  } else {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    constexpr float kNumbers[] = {
        std::numeric_limits<float>::quiet_NaN(), kInfinity, -kInfinity, 0.0F, -0.0F};
    const std::uint64_t choice = h % 20;
    if (choice < std::size(kNumbers)) return static_cast<T>(kNumbers[choice]);
    return static_cast<T>(static_cast<float>(static_cast<int>(choice % 7) - 3));
  }
}

// Element `index` of what `rank` brings.
template <typename T>
T element(Data data, std::uint64_t seed, int rank, std::size_t index, ReduceOp op) {
  if (data == Data::kExact) {
    const int number = exact_number(seed, rank, index, op);
    if constexpr (std::same_as<T, bool>) return number != 0;
    if constexpr (!std::same_as<T, bool>) return static_cast<T>(static_cast<float>(number));
  }
  const std::uint64_t h = mix(seed ^ mix(static_cast<std::uint64_t>(rank) << 40 ^ index));
  if constexpr (!std::integral<T>) {
    if (data == Data::kSpecial) return from_specials<T>(h);
  }
  return from_random<T>(h);
}

template <std::integral T>
T combine_integers(ReduceOp op, T a, T b) {
  const auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kAvg:
      return static_cast<T>(x + y);
    case ReduceOp::kProduct:
      return static_cast<T>(x * y);
    case ReduceOp::kMin:
      return b < a ? b : a;
    case ReduceOp::kMax:
      return b > a ? b : a;
    case ReduceOp::kBitAnd:
      return static_cast<T>(x & y);
    case ReduceOp::kBitOr:
      return static_cast<T>(x | y);
    case ReduceOp::kBitXor:
      return static_cast<T>(x ^ y);
  }
  return a;
}

template <std::floating_point T>
T combine_floats(ReduceOp op, T a, T b) {
  switch (op) {
    case ReduceOp::kProduct:
      return a * b;
    case ReduceOp::kMin:
      return b < a ? b : a;
    case ReduceOp::kMax:
      return b > a ? b : a;
    default:
      return a + b;
  }
}

template <Complex T>
T combine_complex(ReduceOp op, T a, T b) {
  if (op != ReduceOp::kProduct) return {a.real() + b.real(), a.imag() + b.imag()};
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

// The reduction from left to right, in the accumulation type, rounded once. `value(r)` is rank r's.
template <typename T, typename Value>
T reduced(ReduceOp op, int ranks, const Value& value) {
  if constexpr (std::same_as<T, bool>) {
    bool result = value(0);
    const bool all = op == ReduceOp::kProduct || op == ReduceOp::kMin || op == ReduceOp::kBitAnd;
    for (int r = 1; r < ranks; ++r) {
      const bool next = value(r);
      result = op == ReduceOp::kBitXor ? result != next : all ? result && next : result || next;
    }
    return result;
  } else if constexpr (std::integral<T>) {
    T result = value(0);
    for (int r = 1; r < ranks; ++r) result = combine_integers<T>(op, result, value(r));
    if (op != ReduceOp::kAvg) return result;
    __extension__ __int128 sum = 0;
    for (int r = 0; r < ranks; ++r) sum += value(r);
    return static_cast<T>(sum / ranks);
  } else if constexpr (Complex<T>) {
    using Real = typename T::value_type;
    T result = value(0);
    for (int r = 1; r < ranks; ++r) result = combine_complex<T>(op, result, value(r));
    if (op != ReduceOp::kAvg) return result;
    return {result.real() / static_cast<Real>(ranks), result.imag() / static_cast<Real>(ranks)};
  } else {
    using Wide = std::conditional_t<SmallFloat<T>, float, T>;
    auto result = static_cast<Wide>(value(0));
    for (int r = 1; r < ranks; ++r) {
      result = combine_floats<Wide>(op, result, static_cast<Wide>(value(r)));
    }
    if (op == ReduceOp::kAvg) result /= static_cast<Wide>(ranks);
    return static_cast<T>(result);
  }
}

// The same for exact data and sum, product, min or max, without any order: in whole numbers.
template <typename T, typename Number>
T exactly_reduced(ReduceOp op, int ranks, const Number& number) {
  std::int64_t result = number(0);
  for (int r = 1; r < ranks; ++r) result = combine_integers<std::int64_t>(op, result, number(r));
  if constexpr (std::same_as<T, bool>) {
    return result != 0;
  } else if constexpr (std::integral<T>) {
    return static_cast<T>(result);
  } else {
    return static_cast<T>(static_cast<float>(result));
  }
}

// All NaNs are equal, and so are the two zeros, as either may result, depending on the order.
template <typename T>
bool alike(T a, T b) {
  if constexpr (Complex<T>) {
    return alike(a.real(), b.real()) && alike(a.imag(), b.imag());
  } else {
    const auto x = static_cast<double>(a), y = static_cast<double>(b);
    return x == y || (std::isnan(x) && std::isnan(y));
  }
}

// The result for special values, in any order. One NaN makes the result NaN, also for min and max.
// Otherwise IEEE arithmetic applies, as sums and products of the other values are exact.
template <typename T, typename Value>
T specially_reduced(ReduceOp op, int ranks, const Value& value) {
  if constexpr (!std::integral<T> && !Complex<T>) {
    for (int r = 0; r < ranks; ++r) {
      if (std::isnan(static_cast<double>(value(r)))) return value(r);
    }
  }
  return reduced<T>(op, ranks, value);
}

}  // namespace hocket::conformance
