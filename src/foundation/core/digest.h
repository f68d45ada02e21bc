// Digests of arrays, block by block. They show whether two runs had the same bytes, and whether a
// number was not finite.
//
//   block:   stripe 0 | stripe 1 | ... | last stripe, filled up with zeros
//   stripe:  lane 0 | lane 1 | ... | lane 7          a word of 64 bits in each lane
//
// `sums` adds up the words of each lane, and then the lanes, each with an odd weight. `order` adds
// up the intermediate sums, so that it detects exchanged words. If a single bit differs, the
// digests always differ. Other differences are missed with a probability of about 2^-64. A digest
// is the same on every machine and with every instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "hocket/types.h"

namespace hocket::core {

// The digest of one block. A value.
struct Digest {
  std::uint64_t sums = 0;
  std::uint64_t order = 0;
  bool operator==(const Digest&) const = default;
};

// Returns the number of blocks of an array; 0 if the array is empty.
constexpr std::size_t block_count(std::size_t bytes, std::size_t block_bytes) noexcept {
  return (bytes + block_bytes - 1) / block_bytes;
}

// Computes the digests of all blocks of `data`, which may be unaligned, into `digests`.
// `block_bytes` is a multiple of the element's size. Returns the index of the first block with an
// infinity or a NaN, if there is one.
std::optional<std::size_t> digest_blocks(const void* data,
                                         std::size_t bytes,
                                         std::size_t block_bytes,
                                         DType dtype,
                                         Digest* digests) noexcept;

// Returns the index of the first element that is an infinity or a NaN. For a complex element,
// either part may be.
std::optional<std::size_t> first_non_finite(const void* data,
                                            std::size_t count,
                                            DType dtype) noexcept;

}  // namespace hocket::core
