// The numbers that a benchmark moves, and whether they arrived.
//
// Every rank, index and seed has its own number, small enough that sums are exact, so that a part
// in the wrong place, from the wrong rank or left over from an earlier call is found.
#pragma once

#include <cstdint>
#include <string>

#include "interfaces/cli/bench/case.h"

namespace hocket::cli::bench {

// One rank's arrays for a case. A view; `in` is null in place and where the rank brings nothing.
struct Arrays {
  void* in = nullptr;
  void* out = nullptr;
};

// Where and by whom.
struct Seat {
  int rank = 0;
  int ranks = 1;
};

// Writes the inputs of `subject` as `seed` tells, and into every other element what no result is.
void fill(const Case& subject, Seat seat, std::uint32_t seed, Arrays arrays);

// Compares the results with what `fill` with the same seed on every rank must give; it
// looks at some of many millions of elements. Empty when all is right; else what is wrong first,
// and how much is.
std::string check(const Case& subject, Seat seat, std::uint32_t seed, Arrays arrays);

}  // namespace hocket::cli::bench
