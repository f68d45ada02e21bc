// Floats in 8 bits: blocks of a least value, a step, and a byte an element.
#pragma once

#include <cstddef>

namespace hocket::composed {

// Bytes that `count` floats take.
std::size_t compressed_size(std::size_t count) noexcept;
// Writes compressed_size(count) bytes. A block with a value that is not finite is written as such.
void compress(const float* in, std::size_t count, std::byte* out) noexcept;
// The reverse; the second adds to what is there.
void decompress(const std::byte* in, std::size_t count, float* out) noexcept;
void add_decompressed(const std::byte* in, std::size_t count, float* out) noexcept;

}  // namespace hocket::composed
