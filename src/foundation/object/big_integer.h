// Arithmetic on integers of any size. A magnitude is an absolute value as little-endian bytes
// without zero bytes at the end. Zero has no bytes.
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

// Removes zero bytes at the end, which are the most significant ones.
void trim(Magnitude& magnitude);

Magnitude magnitude_of(std::uint64_t value);

// Returns the integer if it fits into 64 bits with a sign.
std::optional<std::int64_t> to_int64(bool negative, std::span<const std::byte> magnitude);

// Convert from and to decimal digits without a sign. Absent if the text is empty or contains
// anything but digits. The time grows with the square of the length.
std::optional<Magnitude> magnitude_from_decimal(std::string_view digits);
std::string magnitude_to_decimal(std::span<const std::byte> magnitude);

}  // namespace hocket::object
