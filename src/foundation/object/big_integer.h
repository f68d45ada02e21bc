// Integers of any size as magnitudes: little-endian bytes without trailing zeros. Zero is empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hocket::object {

using Magnitude = std::vector<std::byte>;

// Removes trailing zeros.
void trim(Magnitude& magnitude);

Magnitude magnitude_of(std::uint64_t value);

// Returns the number if it fits into a signed 64-bit integer.
std::optional<std::int64_t> to_int64(bool negative, std::span<const std::byte> magnitude);

// Convert from and to decimal digits without sign. Absent if the text is empty or has other
// characters. The time grows with the square of the length.
std::optional<Magnitude> magnitude_from_decimal(std::string_view digits);
std::string magnitude_to_decimal(std::span<const std::byte> magnitude);

}  // namespace hocket::object
