// The basic types of hocket's interface: element types, reduction operators, kinds of memory.
//
// All types here are values: copyable, comparable, without lifetime, safe to use from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>  // has durations, but not the calendar of <chrono>, which compiles slowly
#include <string_view>

#include "hocket/small_floats.h"

// Declares the standard library's complex numbers without defining them: <complex> compiles slowly,
// because it includes streams. Programs that use complex numbers include it.
// clang-format off
namespace std _GLIBCXX_VISIBILITY(default) {
_GLIBCXX_BEGIN_NAMESPACE_VERSION
template <typename>
class complex;
_GLIBCXX_END_NAMESPACE_VERSION
}
// clang-format on

namespace hocket {

// The type of an array's elements.
//
// Reductions accumulate in the type itself, with one exception: floats of 8 and 16 bits accumulate
// in float32 and round once, at the end.
enum class DType : std::uint8_t {
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
  kComplex64,
  kComplex128,
  kFloat8E4M3,  // OCP "FN" variant: no infinities
  kFloat8E5M2,
};
inline constexpr int kDTypeCount = 17;

// The operation of a reduction. `is_defined(op, dtype)` says which dtypes it supports. Other
// combinations are refused with `InvalidArgument`.
//
// The sum of bools is logical or, and their product is logical and. Integer sums and products wrap
// around. kMin and kMax propagate NaN (IEEE 754-2019 minimum and maximum) and do not support
// complex numbers. kAvg divides the sum by the number of ranks; for integers the division truncates
// toward zero.
enum class ReduceOp : std::uint8_t {
  kSum,
  kProduct,
  kMin,
  kMax,
  kAvg,
  kBitAnd,
  kBitOr,
  kBitXor,
};
inline constexpr int kReduceOpCount = 8;

// The memory that holds an array.
enum class MemoryKind : std::uint8_t { kHost, kCuda };

// The order of the elements of an array with several axes. kC: along the last axis first. kFortran:
// along the first axis first. kAny: the array has one axis, or its order is unknown.
enum class MemoryOrder : std::uint8_t { kAny, kC, kFortran };

// A time limit. An infinite one must be given as `kForever`.
using Duration = std::chrono::nanoseconds;
inline constexpr Duration kForever = Duration::max();

// Returns the bytes of one element.
constexpr std::size_t size_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::kBool:
    case DType::kInt8:
    case DType::kUInt8:
    case DType::kFloat8E4M3:
    case DType::kFloat8E5M2:
      return 1;
    case DType::kInt16:
    case DType::kUInt16:
    case DType::kFloat16:
    case DType::kBFloat16:
      return 2;
    case DType::kInt32:
    case DType::kUInt32:
    case DType::kFloat32:
      return 4;
    case DType::kInt64:
    case DType::kUInt64:
    case DType::kFloat64:
    case DType::kComplex64:
      return 8;
    case DType::kComplex128:
      return 16;
  }
  return 0;
}

// Returns the name that messages and Python use: "float32", "bfloat16", "float8_e4m3", ...
std::string_view name_of(DType dtype) noexcept;
// Returns "sum", "product", "min", "max", "avg", "band", "bor" or "bxor".
std::string_view name_of(ReduceOp op) noexcept;

// Return the type or operation with this name. "prod" also means "product".
// @throws InvalidArgument, which lists the names, if there is no such name.
DType dtype_from_name(std::string_view name);
ReduceOp reduce_op_from_name(std::string_view name);

// Returns whether `op` supports `dtype`.
constexpr bool is_defined(ReduceOp op, DType dtype) noexcept {
  const bool is_complex = dtype == DType::kComplex64 || dtype == DType::kComplex128;
  const bool is_integral = dtype <= DType::kUInt64;
  switch (op) {
    case ReduceOp::kSum:
    case ReduceOp::kProduct:
      return true;
    case ReduceOp::kMin:
    case ReduceOp::kMax:
      return !is_complex;
    case ReduceOp::kAvg:
      return dtype != DType::kBool;
    case ReduceOp::kBitAnd:
    case ReduceOp::kBitOr:
    case ReduceOp::kBitXor:
      return is_integral;
  }
  return false;
}

// Maps a C++ type to its DType. Distinct integer types of equal width, such as long and long long,
// map to one DType.
template <typename T>
struct DTypeOf {
  static constexpr bool kKnown = false;
};
namespace detail {
template <DType D>
struct Known {
  static constexpr bool kKnown = true;
  static constexpr DType kValue = D;
};
template <std::size_t Size, bool Signed>
struct IntegerOfWidth;
template <>
struct IntegerOfWidth<1, true> : Known<DType::kInt8> {};
template <>
struct IntegerOfWidth<2, true> : Known<DType::kInt16> {};
template <>
struct IntegerOfWidth<4, true> : Known<DType::kInt32> {};
template <>
struct IntegerOfWidth<8, true> : Known<DType::kInt64> {};
template <>
struct IntegerOfWidth<1, false> : Known<DType::kUInt8> {};
template <>
struct IntegerOfWidth<2, false> : Known<DType::kUInt16> {};
template <>
struct IntegerOfWidth<4, false> : Known<DType::kUInt32> {};
template <>
struct IntegerOfWidth<8, false> : Known<DType::kUInt64> {};
}  // namespace detail
template <>
struct DTypeOf<bool> : detail::Known<DType::kBool> {};
template <>
struct DTypeOf<signed char> : detail::IntegerOfWidth<1, true> {};
template <>
struct DTypeOf<unsigned char> : detail::IntegerOfWidth<1, false> {};
template <>
struct DTypeOf<std::byte> : detail::IntegerOfWidth<1, false> {};
template <>
struct DTypeOf<short> : detail::IntegerOfWidth<2, true> {};
template <>
struct DTypeOf<unsigned short> : detail::IntegerOfWidth<2, false> {};
template <>
struct DTypeOf<int> : detail::IntegerOfWidth<4, true> {};
template <>
struct DTypeOf<unsigned int> : detail::IntegerOfWidth<4, false> {};
template <>
struct DTypeOf<long> : detail::IntegerOfWidth<sizeof(long), true> {};
template <>
struct DTypeOf<unsigned long> : detail::IntegerOfWidth<sizeof(long), false> {};
template <>
struct DTypeOf<long long> : detail::IntegerOfWidth<8, true> {};
template <>
struct DTypeOf<unsigned long long> : detail::IntegerOfWidth<8, false> {};
template <>
struct DTypeOf<float16> : detail::Known<DType::kFloat16> {};
template <>
struct DTypeOf<bfloat16> : detail::Known<DType::kBFloat16> {};
template <>
struct DTypeOf<float8_e4m3> : detail::Known<DType::kFloat8E4M3> {};
template <>
struct DTypeOf<float8_e5m2> : detail::Known<DType::kFloat8E5M2> {};
template <>
struct DTypeOf<float> : detail::Known<DType::kFloat32> {};
template <>
struct DTypeOf<double> : detail::Known<DType::kFloat64> {};
template <>
struct DTypeOf<std::complex<float>> : detail::Known<DType::kComplex64> {};
template <>
struct DTypeOf<std::complex<double>> : detail::Known<DType::kComplex128> {};

// A C++ type that hocket can move and reduce.
template <typename T>
concept Element = DTypeOf<T>::kKnown;

template <Element T>
inline constexpr DType dtype_of = DTypeOf<T>::kValue;

}  // namespace hocket
