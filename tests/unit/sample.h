// Elements that differ for each rank and place, and their sums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hocket::sample {

using Elements = std::vector<std::int32_t>;

inline constexpr std::int32_t kUntouched = -7;

inline std::int32_t value(int rank, std::size_t i) {
  return static_cast<std::int32_t>(static_cast<std::size_t>(rank) * 1'000'003 + i * 17 + 1);
}
inline std::int32_t sum(int n, std::size_t i) {
  std::uint32_t total = 0;
  for (int r = 0; r < n; ++r) total += static_cast<std::uint32_t>(value(r, i));
  return static_cast<std::int32_t>(total);
}

}  // namespace hocket::sample
