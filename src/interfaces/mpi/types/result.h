// Errors of MPI's calls as values. The functions of src/interfaces/mpi/types throw nothing but
// std::bad_alloc.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>

namespace hocket::mpi {

// The error classes that types and operators return, with the numbers of the standard's binary
// interface.
enum class ErrorClass : int {
  kCount = 2,
  kType = 3,
  kOp = 10,
  kDims = 12,
  kArg = 13,
  kTruncate = 15,
  kConversion = 25,
  kValueTooLarge = 59,
};

// A value: the reason why a call was refused. The text names the argument and its expected values.
// The caller puts the function's name before it.
struct Refusal {
  ErrorClass error_class = ErrorClass::kArg;
  std::string text = {};
};

// A value, or the refusal in its place. `value` may be called only if `ok` is true.
template <typename T>
class [[nodiscard("it may be a refusal")]] Result {
 public:
  Result(T value) : held_(std::move(value)) {}
  Result(Refusal refusal) : held_(std::move(refusal)) {}

  bool ok() const noexcept { return held_.index() == 0; }
  const T& value() const { return std::get<0>(held_); }
  T take() { return std::get<0>(std::move(held_)); }
  const Refusal& refusal() const { return std::get<1>(held_); }

 private:
  std::variant<T, Refusal> held_;
};

// Sums and products of sizes; absent if the result overflows.
inline std::optional<std::int64_t> checked_add(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return {};
  return sum;
}
inline std::optional<std::int64_t> checked_multiply(std::int64_t a, std::int64_t b) noexcept {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return {};
  return product;
}

}  // namespace hocket::mpi
