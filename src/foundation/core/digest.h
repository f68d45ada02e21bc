// Digests of arrays, block by block: what tells whether two runs had the same bytes, and whether a
// number among them was not finite.
//
// A digest is the same on every machine and with every instruction set. Any single bit that
// differs makes a digest differ, always: `sums` adds up the words of a block in lanes, and weighs
// each lane by an odd number. Other differences are missed about once in 2^64: `order` adds up what
// the sums were on the way, so that words that change places are seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "hocket/types.h"

namespace hocket::core {

// A value.
struct Digest {
  std::uint64_t sums = 0;
  std::uint64_t order = 0;
  bool operator==(const Digest&) const = default;
};

// Into how many blocks an array falls; none where it is empty.
constexpr std::size_t block_count(std::size_t bytes, std::size_t block_bytes) noexcept {
  return (bytes + block_bytes - 1) / block_bytes;
}

// The digests of all blocks of `data`, which may lie at any address; `block_bytes` is a multiple of
// the element's. The first block that has an infinity, or what is no number, if any has.
std::optional<std::size_t> digest_blocks(const void* data,
                                         std::size_t bytes,
                                         std::size_t block_bytes,
                                         DType dtype,
                                         Digest* digests) noexcept;

// The first element that is an infinity or no number. A complex one is where either part is.
std::optional<std::size_t> first_non_finite(const void* data,
                                            std::size_t count,
                                            DType dtype) noexcept;

}  // namespace hocket::core
