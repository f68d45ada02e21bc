// The exchange of bytes between ranks that have no engine yet.
#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <span>
#include <type_traits>
#include <vector>

namespace hocket::engine {

// A collective function: every rank passes bytes, and gets the bytes of all ranks, by rank. Only
// ranks of the job can write to its channel.
using Gather = std::function<std::vector<std::byte>(std::span<const std::byte>)>;

// Returns every rank's value, by rank. Collective.
template <typename T>
std::vector<T> gather_values(const Gather& gather, const T& own) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::vector<std::byte> bytes = gather(std::as_bytes(std::span(&own, 1)));
  std::vector<T> all(bytes.size() / sizeof(T));
  std::memcpy(all.data(), bytes.data(), all.size() * sizeof(T));
  return all;
}

}  // namespace hocket::engine
