// The way of an array through a transform: on which boxes the ranks transform which axes.
#pragma once

#include <vector>

#include "hocket/distribution.h"
#include "hocket/fft.h"

namespace hocket::fft {

// What all ranks do between two exchanges: they hold the boxes `before`, transform the axes, which
// are whole there, and hold `after`. The two differ where the last axis turns real or complex.
struct Leg {
  std::vector<Box> before, after;  // by rank
  std::vector<std::size_t> axes;   // in rising order; none: nothing is transformed
  bool turns = false;              // real to complex, or back
};

// A value. What is wanted, the same on all ranks.
struct Wanted {
  Extents shape;          // of the real array, where one is
  std::size_t first = 0;  // axis that is transformed; and all after it
  FftKind kind = FftKind::kComplex;
};

// The legs, at least one, the first from `from`, the last to `to`.
std::vector<Leg> route(const Wanted& wanted, std::vector<Box> from, std::vector<Box> to);

// The array's shape before the transform, and after it.
Extents shape_before(const Wanted& wanted);
Extents shape_after(const Wanted& wanted);

// `shape` cut into a box a rank such that the axes of `whole` stay whole, as equal as can be.
std::vector<Box> cut(const Extents& shape, std::size_t ranks, const std::vector<bool>& whole);

}  // namespace hocket::fft
