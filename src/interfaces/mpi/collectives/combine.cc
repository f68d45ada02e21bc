#include "interfaces/mpi/collectives/combine.h"

#include <algorithm>
#include <complex>
#include <cstring>

#include "hocket/small_floats.h"

namespace hocket::mpi {
namespace {

template <typename T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <typename T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

// Calls `f` with a value of the C++ type that `number` stands for.
template <typename F>
bool with_number(Number number, F f) {
  switch (number) {
    case Number::kInt8:
      return f(std::int8_t{}), true;
    case Number::kInt16:
      return f(std::int16_t{}), true;
    case Number::kInt32:
      return f(std::int32_t{}), true;
    case Number::kInt64:
      return f(std::int64_t{}), true;
    case Number::kUInt8:
      return f(std::uint8_t{}), true;
    case Number::kUInt16:
      return f(std::uint16_t{}), true;
    case Number::kUInt32:
      return f(std::uint32_t{}), true;
    case Number::kUInt64:
      return f(std::uint64_t{}), true;
    case Number::kFloat16:
      return f(float16{}), true;
    case Number::kBfloat16:
      return f(bfloat16{}), true;
    case Number::kFloat32:
      return f(float{}), true;
    case Number::kFloat64:
      return f(double{}), true;
    case Number::kLongDouble:
      return f(static_cast<long double>(0)), true;
    case Number::kBytes:
    case Number::kInt128:
    case Number::kQuad:
      return false;
  }
  return false;
}

// Calls `use` with the operator as a function of two numbers, so that loops need not look it up.
template <typename T, typename Use>
void with_operator(std::string_view op, Use use) {
  if (op == "MPI_LAND") return use([](T a, T b) { return static_cast<T>(a != T{} && b != T{}); });
  if (op == "MPI_LOR") return use([](T a, T b) { return static_cast<T>(a != T{} || b != T{}); });
  if (op == "MPI_LXOR")
    return use([](T a, T b) { return static_cast<T>((a != T{}) != (b != T{})); });
  if (op == "MPI_MAX") return use([](T a, T b) { return std::max(a, b); });
  if (op == "MPI_MIN") return use([](T a, T b) { return std::min(a, b); });
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    if (op == "MPI_BAND") return use([](T a, T b) { return static_cast<T>(a & b); });
    if (op == "MPI_BOR") return use([](T a, T b) { return static_cast<T>(a | b); });
    if (op == "MPI_BXOR") return use([](T a, T b) { return static_cast<T>(a ^ b); });
    if (op == "MPI_SUM") {
      return use([](T a, T b) { return static_cast<T>(static_cast<U>(a) + static_cast<U>(b)); });
    }
    return use([](T a, T b) {
      return static_cast<T>(std::uint64_t{1} * static_cast<U>(a) * static_cast<U>(b));
    });
  } else {
    if (op == "MPI_SUM") return use([](T a, T b) { return static_cast<T>(a + b); });
    return use([](T a, T b) { return static_cast<T>(a * b); });
  }
}

// Loads a complex number. Parts of 16 bits are computed as float.
template <typename T>
std::complex<std::conditional_t<sizeof(T) == 2, float, T>> load_complex(const std::byte* from) {
  return {load<T>(from), load<T>(from + sizeof(T))};
}

// Combines complex numbers whose parts have type T.
template <typename T>
void combine_complex(bool adds, const std::byte* left, std::byte* right, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto place = static_cast<std::size_t>(i) * 2 * sizeof(T);
    const auto a = load_complex<T>(left + place), b = load_complex<T>(right + place);
    const auto result = adds ? a + b : a * b;
    store(right + place, static_cast<T>(result.real()));
    store(right + place + sizeof(T), static_cast<T>(result.imag()));
  }
}

// Computes right = left op right for packed elements of one kind.
bool combine_numbers(std::string_view op,
                     const KindFacts& kind,
                     const std::byte* left,
                     std::byte* right,
                     std::int64_t count) {
  return with_number(kind.number, [&]<typename T>(T) {
    if (kind.numbers == 2) {
      if constexpr (!std::is_integral_v<T>) {
        combine_complex<T>(op == "MPI_SUM", left, right, count);
      }
      return;
    }
    with_operator<T>(op, [&](auto combined) {
      for (std::int64_t i = 0; i < count; ++i) {
        const auto place = static_cast<std::size_t>(i) * sizeof(T);
        store(right + place, combined(load<T>(left + place), load<T>(right + place)));
      }
    });
  });
}

// Pairs are packed without gaps: a value, then an index.
bool combine_pairs(std::string_view op,
                   const KindFacts& kind,
                   const std::byte* left,
                   std::byte* right,
                   std::int64_t count) {
  const KindFacts& value = facts_of(kind.first);
  const KindFacts& index = facts_of(kind.second);
  const bool largest = op == "MPI_MAXLOC";
  bool known = false;
  with_number(value.number, [&]<typename V>(V) {
    with_number(index.number, [&]<typename I>(I) {
      known = true;
      for (std::int64_t i = 0; i < count; ++i) {
        const auto place = static_cast<std::size_t>(i) * (sizeof(V) + sizeof(I));
        const V a = load<V>(left + place), b = load<V>(right + place);
        const I ia = load<I>(left + place + sizeof(V)), ib = load<I>(right + place + sizeof(V));
        if (a == b) {
          store(right + place + sizeof(V), std::min(ia, ib));
        } else if (largest ? a > b : a < b) {
          std::memcpy(right + place, left + place, sizeof(V) + sizeof(I));
        }
      }
    });
  });
  return known;
}

}  // namespace

bool combine_elements(std::string_view op,
                      const KindFacts& kind,
                      const std::byte* left,
                      std::byte* right,
                      std::int64_t count) {
  return kind.is_pair() ? combine_pairs(op, kind, left, right, count)
                        : combine_numbers(op, kind, left, right, count);
}

}  // namespace hocket::mpi
