// Vectors of sixteen bytes, the unit in which data moves, and access to unaligned arrays by
// vectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engines/peer/kernels/marks.h"
#include "engines/peer/layout.h"

namespace hocket::engines::peer {

// A Vector is a value that holds whole elements of any dtype. Elements beyond the end of an array
// are zeros.
struct alignas(16) Vector {
  std::uint32_t word[4];
};
inline constexpr std::uint32_t kVectorBytes = sizeof(Vector);

// A packet is written and read as a whole: a reader that sees `flag` sees the words that were
// written with it.
struct alignas(16) Packet {
  std::uint32_t word[3];
  std::uint32_t flag;
};
static_assert(sizeof(Packet) == kPacketBytes);

// A flag is never 0, the value of new memory, and does not repeat within 2^31 steps.
constexpr std::uint32_t flag_of(std::uint64_t step) noexcept {
  return static_cast<std::uint32_t>(step) | 0x80000000u;
}
// Period and length of a sweep. In the first kSweepFor of every kSweepEvery steps the packet slots
// are cleared, so that no old flag is taken for a new one.
inline constexpr std::uint64_t kSweepEvery = std::uint64_t{1} << 30;
inline constexpr std::uint64_t kSweepFor = 64;

// Returns the largest power of two, up to 16, that divides the address and `bytes`. The array can
// be read in units of this size.
HOCKET_ANYWHERE std::uint32_t unit_of(const void* at, std::uint64_t bytes) {
  const auto bits = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(at)) |
                    static_cast<std::uint32_t>(bytes) | kVectorBytes;
  return bits & (~bits + 1);
}

// Loads a T from an aligned address, whatever the type of the memory.
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

// Loads unaligned arrays, and the ends of all arrays.
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

// Loads vector `index` of an array of `bytes` bytes. The index must be within the array.
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
