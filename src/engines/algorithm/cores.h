// Reduces a number of ranks to a power of two. Pure functions.
//
// Algorithms that pair ranks by the bits of their numbers run on a *core* of 2^k ranks. This is the
// largest power of two up to n. The n - 2^k *excess* ranks are each represented by a rank in the
// core. Among the first 2 * (n - 2^k) ranks, the odd ranks are in the core, and each represents the
// rank before it. So consecutive core numbers represent consecutive ranks.
//
//   n = 6:   rank           0    1    2    3    4    5
//            core number         0         1    2    3
//            represents          0,1       2,3  4    5
#pragma once

#include <bit>

namespace hocket::algorithm {

constexpr int core_size(int n) noexcept {
  return static_cast<int>(std::bit_floor(static_cast<unsigned>(n)));
}
// Returns the number of excess ranks.
constexpr int core_excess(int n) noexcept { return n - core_size(n); }

// Returns the core number of a rank, or -1 for an excess rank.
constexpr int core_number(int rank, int n) noexcept {
  const int paired = 2 * core_excess(n);
  if (rank >= paired) return rank - paired / 2;
  return rank % 2 == 0 ? -1 : rank / 2;
}
// Returns the rank that has a core number.
constexpr int core_rank(int number, int n) noexcept {
  const int excess = core_excess(n);
  return number < excess ? 2 * number + 1 : number + excess;
}
// Returns the first rank that a core number represents. Returns n for the number core_size(n).
constexpr int core_first(int number, int n) noexcept {
  const int excess = core_excess(n);
  return number < excess ? 2 * number : number + excess;
}
// Returns the other rank of a pair. For an excess rank this is its representative, for a core rank
// the excess rank that it represents. Returns -1 for a core rank that represents only itself.
constexpr int core_companion(int rank, int n) noexcept {
  return rank < 2 * core_excess(n) ? rank ^ 1 : -1;
}

}  // namespace hocket::algorithm
