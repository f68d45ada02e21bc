// Vectors of sixteen bytes, the unit in which data moves, and functions that access unaligned
// arrays by vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engines/peer/kernels/marks.h"
#include "engines/peer/layout.h"

namespace hocket::engines::peer {

// Sixteen bytes with whole elements of any dtype. Elements beyond the end of an array are zeros. A
// value.
struct alignas(16) Vector {
  std::uint32_t word[4];
};
inline constexpr std::uint32_t kVectorBytes = sizeof(Vector);

// A packet is written and read as a whole: a reader that sees `flag` also sees the words that were
// written together with the flag.
struct alignas(16) Packet {
  std::uint32_t word[3];
  std::uint32_t flag;
};
static_assert(sizeof(Packet) == kPacketBytes);

// Returns the flag of a step. It is never 0, which is the value of new memory. It repeats after
// 2^31 steps.
constexpr std::uint32_t flag_of(std::uint64_t step) noexcept {
  return static_cast<std::uint32_t>(step) | 0x80000000u;
}
// Period and length of a *sweep*, in steps of a link. In the first kSweepFor of every kSweepEvery
// steps the receiver clears the consumed packet slots. So no reader takes an old flag for a new
// flag when the flags repeat.
inline constexpr std::uint64_t kSweepEvery = std::uint64_t{1} << 30;
inline constexpr std::uint64_t kSweepFor = 64;

// Returns the largest power of two, up to 16, that divides both the address and `bytes`. The array
// can be accessed in units of this size.
HOCKET_ANYWHERE std::uint32_t unit_of(const void* at, std::uint64_t bytes) {
  const auto bits = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(at)) |
                    static_cast<std::uint32_t>(bytes) | kVectorBytes;
  return bits & (~bits + 1);
}

// Load or store a T at an address that is aligned for T. The memory may have any type.
template <typename T>
HOCKET_ANYWHERE T load_aligned(const std::byte* from) {
  assume_global(from);
  T value;
  std::memcpy(&value, __builtin_assume_aligned(from, sizeof(T)), sizeof(T));
  return value;
}
template <typename T>
HOCKET_ANYWHERE void store_aligned(std::byte* to, const T& value) {
  assume_global(to);
  std::memcpy(__builtin_assume_aligned(to, sizeof(T)), &value, sizeof(T));
}

// Load or store the first `bytes` bytes of a vector, in units of one size.
template <typename Unit>
HOCKET_ANYWHERE Vector load_units(const std::byte* from, std::uint32_t bytes) {
  constexpr std::uint32_t kPerWord = sizeof(std::uint32_t) / sizeof(Unit);
  Vector vector{};
  HOCKET_UNROLL
  for (std::uint32_t i = 0; i < kVectorBytes / sizeof(Unit); ++i) {
    if (i * sizeof(Unit) >= bytes) continue;
    const auto unit = static_cast<std::uint32_t>(load_aligned<Unit>(from + i * sizeof(Unit)));
    vector.word[i / kPerWord] |= unit << (i % kPerWord * sizeof(Unit) * 8);
  }
  return vector;
}

template <typename Unit>
HOCKET_ANYWHERE void store_units(std::byte* to, const Vector& vector, std::uint32_t bytes) {
  constexpr std::uint32_t kPerWord = sizeof(std::uint32_t) / sizeof(Unit);
  HOCKET_UNROLL
  for (std::uint32_t i = 0; i < kVectorBytes / sizeof(Unit); ++i) {
    if (i * sizeof(Unit) >= bytes) continue;
    const std::uint32_t word = vector.word[i / kPerWord] >> (i % kPerWord * sizeof(Unit) * 8);
    store_aligned<Unit>(to + i * sizeof(Unit), static_cast<Unit>(word));
  }
}

// Load or store the first `bytes` bytes of a vector, at any address. This is for unaligned arrays
// and for the last vector of any array.
HOCKET_ANYWHERE_APART Vector load_some(const std::byte* from, std::uint32_t bytes) {
  const std::uint32_t unit = unit_of(from, bytes);
  if (unit >= 4) return load_units<std::uint32_t>(from, bytes);
  return unit == 2 ? load_units<std::uint16_t>(from, bytes) : load_units<std::uint8_t>(from, bytes);
}
HOCKET_ANYWHERE_APART void store_some(std::byte* to, Vector vector, std::uint32_t bytes) {
  const std::uint32_t unit = unit_of(to, bytes);
  if (unit >= 4) return store_units<std::uint32_t>(to, vector, bytes);
  if (unit == 2) return store_units<std::uint16_t>(to, vector, bytes);
  store_units<std::uint8_t>(to, vector, bytes);
}

// Returns whether an array consists of whole, aligned vectors.
HOCKET_ANYWHERE bool is_plain(const void* at, std::uint64_t bytes) {
  return unit_of(at, bytes) == kVectorBytes;
}

// Load or store vector `index` of an array of `bytes` bytes. The index must be within the array.
HOCKET_ANYWHERE Vector load_vector(const std::byte* array,
                                   std::uint64_t bytes,
                                   std::uint64_t index) {
  const std::byte* from = array + index * kVectorBytes;
  const std::uint64_t left = bytes - index * kVectorBytes;
  if (left >= kVectorBytes && is_plain(array, 0)) return load_aligned<Vector>(from);
  return load_some(from, left < kVectorBytes ? static_cast<std::uint32_t>(left) : kVectorBytes);
}
HOCKET_ANYWHERE void store_vector(std::byte* array,
                                  std::uint64_t bytes,
                                  std::uint64_t index,
                                  const Vector& vector) {
  std::byte* to = array + index * kVectorBytes;
  const std::uint64_t left = bytes - index * kVectorBytes;
  if (left >= kVectorBytes && is_plain(array, 0)) return store_aligned(to, vector);
  store_some(to, vector, left < kVectorBytes ? static_cast<std::uint32_t>(left) : kVectorBytes);
}

constexpr std::uint64_t vectors_in(std::uint64_t bytes) noexcept {
  return (bytes + kVectorBytes - 1) / kVectorBytes;
}

}  // namespace hocket::engines::peer
