// The power of two in a number of ranks. Pure functions.
//
// Algorithms that pair ranks by the bits of their numbers run on a core of 2^k ranks, the largest
// power of two that n has room for. Each of the others stands next to a rank of the core that
// speaks for it: of the first 2 * (n - 2^k) ranks the odd ones are in the core, and speak for the
// one before them. Consecutive core numbers speak for consecutive ranks.
#pragma once

#include <bit>

namespace hocket::algorithm {

constexpr int core_size(int n) noexcept {
  return static_cast<int>(std::bit_floor(static_cast<unsigned>(n)));
}
// Ranks that are too many.
constexpr int core_excess(int n) noexcept { return n - core_size(n); }

// The core's number of a rank, or -1 for one that another speaks for.
constexpr int core_number(int rank, int n) noexcept {
  const int paired = 2 * core_excess(n);
  if (rank >= paired) return rank - paired / 2;
  return rank % 2 == 0 ? -1 : rank / 2;
}
constexpr int core_rank(int number, int n) noexcept {
  const int excess = core_excess(n);
  return number < excess ? 2 * number + 1 : number + excess;
}
// The first rank that the core's `number` speaks for; of `core_size(n)`: n.
constexpr int core_first(int number, int n) noexcept {
  const int excess = core_excess(n);
  return number < excess ? 2 * number : number + excess;
}
// Who speaks for `rank`, which is not in the core; for whom it speaks, where there is somebody: the
// other of the two, or -1.
constexpr int core_companion(int rank, int n) noexcept {
  return rank < 2 * core_excess(n) ? rank ^ 1 : -1;
}

}  // namespace hocket::algorithm
