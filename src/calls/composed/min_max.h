// Floats in 8 bits: each block has a minimum, a step, and one byte for each element.
#pragma once

#include <cstddef>

namespace hocket::composed {

// Returns the bytes of `count` compressed floats.
std::size_t compressed_size(std::size_t count) noexcept;
// Writes compressed_size(count) bytes. A block with a value that is not finite is marked as not
// finite.
void compress(const float* in, std::size_t count, std::byte* out) noexcept;
// The inverses of `compress`. add_decompressed adds to the contents of `out`.
void decompress(const std::byte* in, std::size_t count, float* out) noexcept;
void add_decompressed(const std::byte* in, std::size_t count, float* out) noexcept;

}  // namespace hocket::composed
