// Integers of any size as magnitudes: little-endian bytes without zeros at the end; zero is empty.
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

// Cuts the zeros at the end off.
void trim(Magnitude& magnitude);

Magnitude magnitude_of(std::uint64_t value);

// The number, where 64 bits with a sign hold it.
std::optional<std::int64_t> to_int64(bool negative, std::span<const std::byte> magnitude);

// Decimal digits, no sign; absent where there is anything else or nothing. The time of both grows
// with the square of the length.
std::optional<Magnitude> magnitude_from_decimal(std::string_view digits);
std::string magnitude_to_decimal(std::span<const std::byte> magnitude);

}  // namespace hocket::object
