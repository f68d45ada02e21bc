// Chunks: parts of large arrays, moved by whole blocks.
#pragma once

#include "engines/peer/block.h"

namespace hocket::engines::peer {

// What of a part one channel moves in one round, in bytes; `first` is a multiple of kVectorBytes.
// Empty: nothing.
struct Stretch {
  std::uint64_t first = 0;
  std::uint32_t bytes = 0;
};
HOCKET_ANYWHERE Stretch stretch_of(const Part& part, int channel, std::uint32_t round) {
  const auto c = static_cast<std::uint32_t>(channel);
  if (c >= part.channels) return {};
  const std::uint64_t first = (static_cast<std::uint64_t>(round) * part.channels + c) * part.unit;
  if (first >= part.bytes) return {};
  const std::uint64_t left = part.bytes - first;
  return {first, left < part.unit ? static_cast<std::uint32_t>(left) : part.unit};
}

// Vectors that a thread keeps under way.
inline constexpr int kUnderWay = 8;

// Calls move(vector) for each vector of `bytes`, in batches: load(vector) of all, then
// store(vector, loaded).
template <typename Machine, typename Load, typename Store>
HOCKET_ANYWHERE void for_vectors(Machine& m,
                                 std::uint32_t bytes,
                                 const Load& load,
                                 const Store& store) {
  const auto vectors = static_cast<std::uint32_t>(vectors_in(bytes));
  const auto threads = static_cast<std::uint32_t>(m.threads());
  auto i = static_cast<std::uint32_t>(m.thread());
  for (; i + (kUnderWay - 1) * threads < vectors; i += kUnderWay * threads) {
    Vector v[kUnderWay];
    HOCKET_UNROLL
    for (std::uint32_t u = 0; u < kUnderWay; ++u) v[u] = load(i + u * threads);
    HOCKET_UNROLL
    for (std::uint32_t u = 0; u < kUnderWay; ++u) store(i + u * threads, v[u]);
  }
  for (; i < vectors; i += threads) store(i, load(i));
}

// From a user's array to a slot, from a slot to a user's array, from one user's array to another's.
template <typename Machine>
HOCKET_ANYWHERE void put_chunk(Machine& m, std::byte* slot, const Part& part, Stretch stretch) {
  const std::byte* from = part.at + stretch.first;
  const auto store = [&](std::uint32_t i, const Vector& v) {
    m.store_staged(slot + std::uint64_t{i} * kVectorBytes, v);
  };
  if (is_plain(from, stretch.bytes)) {
    for_vectors(
        m,
        stretch.bytes,
        [&](std::uint32_t i) {
          return load_aligned<Vector>(from + std::uint64_t{i} * kVectorBytes);
        },
        store);
  } else {
    for_vectors(
        m,
        stretch.bytes,
        [&](std::uint32_t i) { return load_vector(from, stretch.bytes, i); },
        store);
  }
}
template <typename Machine>
HOCKET_ANYWHERE void take_chunk(Machine& m,
                                const Part& part,
                                Stretch stretch,
                                const std::byte* slot) {
  std::byte* to = part.at + stretch.first;
  const auto load = [&](std::uint32_t i) {
    return m.load_staged(slot + std::uint64_t{i} * kVectorBytes);
  };
  if (is_plain(to, stretch.bytes)) {
    for_vectors(m, stretch.bytes, load, [&](std::uint32_t i, const Vector& v) {
      store_aligned(to + std::uint64_t{i} * kVectorBytes, v);
    });
  } else {
    for_vectors(m, stretch.bytes, load, [&](std::uint32_t i, const Vector& v) {
      store_vector(to, stretch.bytes, i, v);
    });
  }
}
template <typename Machine>
HOCKET_ANYWHERE void copy_chunk(Machine& m,
                                std::byte* to,
                                const std::byte* from,
                                std::uint32_t bytes) {
  if (is_plain(from, bytes) && is_plain(to, bytes)) {
    for_vectors(
        m,
        bytes,
        [&](std::uint32_t i) {
          return load_aligned<Vector>(from + std::uint64_t{i} * kVectorBytes);
        },
        [&](std::uint32_t i, const Vector& v) {
          store_aligned(to + std::uint64_t{i} * kVectorBytes, v);
        });
  } else {
    for_vectors(
        m,
        bytes,
        [&](std::uint32_t i) { return load_vector(from, bytes, i); },
        [&](std::uint32_t i, const Vector& v) { store_vector(to, bytes, i, v); });
  }
}

}  // namespace hocket::engines::peer
