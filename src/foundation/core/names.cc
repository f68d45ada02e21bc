// Conversions between dtypes or ops and their names.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "hocket/error.h"
#include "hocket/types.h"

namespace hocket {
namespace {

// The names, in the order of the enumerators.
constexpr std::array<std::string_view, kDTypeCount> kDTypeNames = {"bool",
                                                                   "int8",
                                                                   "int16",
                                                                   "int32",
                                                                   "int64",
                                                                   "uint8",
                                                                   "uint16",
                                                                   "uint32",
                                                                   "uint64",
                                                                   "float16",
                                                                   "bfloat16",
                                                                   "float32",
                                                                   "float64",
                                                                   "complex64",
                                                                   "complex128",
                                                                   "float8_e4m3",
                                                                   "float8_e5m2"};
constexpr std::array<std::string_view, kReduceOpCount> kReduceOpNames = {
    "sum", "product", "min", "max", "avg", "band", "bor", "bxor"};

static_assert(kDTypeNames[static_cast<int>(DType::kFloat8E5M2)] == "float8_e5m2");
static_assert(kReduceOpNames[static_cast<int>(ReduceOp::kBitXor)] == "bxor");

template <typename Enum, std::size_t N>
Enum find_name(const std::array<std::string_view, N>& names,
               std::string_view name,
               std::string_view what) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) {
    throw InvalidArgument(
        fmt::format("there is no {} \"{}\"; there are {}", what, name, fmt::join(names, ", ")));
  }
  return static_cast<Enum>(found - names.begin());
}

}  // namespace

std::string_view name_of(DType dtype) noexcept {
  const auto index = static_cast<std::size_t>(dtype);
  return index < kDTypeNames.size() ? kDTypeNames[index] : "unknown dtype";
}

std::string_view name_of(ReduceOp op) noexcept {
  const auto index = static_cast<std::size_t>(op);
  return index < kReduceOpNames.size() ? kReduceOpNames[index] : "unknown op";
}

DType dtype_from_name(std::string_view name) {
  return find_name<DType>(kDTypeNames, name, "dtype");
}

ReduceOp reduce_op_from_name(std::string_view name) {
  if (name == "prod") return ReduceOp::kProduct;
  return find_name<ReduceOp>(kReduceOpNames, name, "op");
}

}  // namespace hocket
