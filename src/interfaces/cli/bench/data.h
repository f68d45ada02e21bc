// The input numbers of a benchmark, and the check of its results.
//
// Every rank, index and seed has a different number. So the check finds a part in the wrong place,
// from the wrong rank, or left over from an earlier call. Numbers are small enough for exact sums.
#pragma once

#include <cstdint>
#include <string>

#include "interfaces/cli/bench/case.h"

namespace hocket::cli::bench {

// One rank's arrays for a case. A view; `in` is null in place and if the rank has no input.
struct Arrays {
  void* in = nullptr;
  void* out = nullptr;
};

// A rank, and the number of ranks.
struct JobRank {
  int rank = 0;
  int ranks = 1;
};

// Writes the inputs of `subject` for `seed`. Fills all other elements with a value that cannot be a
// result.
void fill(const Case& subject, JobRank self, std::uint32_t seed, Arrays arrays);

// Compares the results with those that follow from `fill` with the same seed on every rank. Checks
// only a sample of very large arrays. Returns an empty text if all are right; else the first error,
// and the number of errors.
std::string check(const Case& subject, JobRank self, std::uint32_t seed, Arrays arrays);

}  // namespace hocket::cli::bench
