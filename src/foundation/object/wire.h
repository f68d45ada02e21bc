// The tags and the header of the encoding that codec.h describes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace hocket::object {

enum class Tag : std::uint8_t {
  kNone,
  kFalse,
  kTrue,
  kInteger,
  kLargePositive,
  kLargeNegative,
  kDouble,
  kComplex,
  kString,
  kBytes,
  kList,
  kTuple,
  kDict,
  kArray,
  kPickle,
  kScalar,
  kByteArray,
  kFortranArray,  // in Python the array has Fortran order; here its elements are in C order
};

inline constexpr std::array kHeader{std::byte{'H'}, std::byte{'K'}, std::byte{'O'}, std::byte{1}};

// Map signed numbers to unsigned ones and back. Numbers near zero become small: 0, -1, 1, -2 become
// 0, 1, 2, 3.
constexpr std::uint64_t zigzag(std::int64_t value) noexcept {
  return static_cast<std::uint64_t>(value) << 1 ^ static_cast<std::uint64_t>(value >> 63);
}
constexpr std::int64_t unzigzag(std::uint64_t value) noexcept {
  return static_cast<std::int64_t>(value >> 1 ^ (~(value & 1) + 1));
}

}  // namespace hocket::object
