// How ranks tell each other what they have, before they have an engine that could.
#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <span>
#include <type_traits>
#include <vector>

namespace hocket::engine {

// Collective: tells every rank these bytes and returns all ranks' bytes, by rank, by a way that
// only ranks of the job can write to.
using Gather = std::function<std::vector<std::byte>(std::span<const std::byte>)>;

// Every rank's value, by rank. Collective.
template <typename T>
std::vector<T> gather_values(const Gather& gather, const T& own) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::vector<std::byte> bytes = gather(std::as_bytes(std::span(&own, 1)));
  std::vector<T> all(bytes.size() / sizeof(T));
  std::memcpy(all.data(), bytes.data(), all.size() * sizeof(T));
  return all;
}

}  // namespace hocket::engine
