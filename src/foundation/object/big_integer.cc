#include "foundation/object/big_integer.h"

#include <algorithm>
#include <limits>

namespace hocket::object {
namespace {

// Decimal digits are processed in groups of nine, because 10^9 is the largest power of ten below
// 2^32.
constexpr std::uint32_t kGroup = 1'000'000'000;
constexpr std::size_t kGroupDigits = 9;

}  // namespace

void trim(Magnitude& magnitude) {
  while (!magnitude.empty() && magnitude.back() == std::byte{0}) magnitude.pop_back();
}

Magnitude magnitude_of(std::uint64_t value) {
  Magnitude result;
  for (; value != 0; value >>= 8) result.push_back(static_cast<std::byte>(value & 0xff));
  return result;
}

std::optional<std::int64_t> to_int64(bool negative, std::span<const std::byte> magnitude) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < magnitude.size(); ++i) {
    if (magnitude[i] == std::byte{0}) continue;
    if (i >= sizeof(value)) return std::nullopt;
    value |= static_cast<std::uint64_t>(magnitude[i]) << (8 * i);
  }
  constexpr auto kLargest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (value > kLargest + (negative ? 1 : 0)) return std::nullopt;
  return static_cast<std::int64_t>(negative ? ~value + 1 : value);
}

std::optional<Magnitude> magnitude_from_decimal(std::string_view digits) {
  if (digits.empty()) return std::nullopt;
  const bool all_digits =
      std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (!all_digits) return std::nullopt;

  Magnitude result;
  while (!digits.empty()) {
    // The first group is shorter if the number of digits is no multiple of nine.
    const std::size_t length = (digits.size() - 1) % kGroupDigits + 1;
    std::uint64_t carry = 0;
    std::uint64_t scale = 1;
    for (const char digit : digits.substr(0, length)) {
      carry = carry * 10 + static_cast<std::uint64_t>(digit - '0');
      scale *= 10;
    }
    digits.remove_prefix(length);
    for (std::byte& byte : result) {
      carry += static_cast<std::uint64_t>(byte) * scale;
      byte = static_cast<std::byte>(carry & 0xff);
      carry >>= 8;
    }
    for (; carry != 0; carry >>= 8) result.push_back(static_cast<std::byte>(carry & 0xff));
  }
  return result;
}

std::string magnitude_to_decimal(std::span<const std::byte> magnitude) {
  Magnitude rest(magnitude.begin(), magnitude.end());
  trim(rest);
  if (rest.empty()) return "0";

  std::string reversed;
  while (!rest.empty()) {
    std::uint64_t remainder = 0;
    for (auto byte = rest.rbegin(); byte != rest.rend(); ++byte) {
      remainder = remainder << 8 | static_cast<std::uint64_t>(*byte);
      *byte = static_cast<std::byte>(remainder / kGroup);
      remainder %= kGroup;
    }
    trim(rest);
    for (std::size_t i = 0; i < kGroupDigits && (remainder != 0 || !rest.empty()); ++i) {
      reversed.push_back(static_cast<char>('0' + remainder % 10));
      remainder /= 10;
    }
  }
  std::reverse(reversed.begin(), reversed.end());
  return reversed;
}

}  // namespace hocket::object
