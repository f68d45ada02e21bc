// The route of an array through a transform: the boxes on which the ranks transform each axis.
#pragma once

#include <vector>

#include "hocket/distribution.h"
#include "hocket/fft.h"

namespace hocket::fft {

// The work of all ranks between two exchanges. The ranks hold the boxes `before`, transform the
// axes, which are whole in these boxes, and then hold the boxes `after`. The boxes differ if the
// last axis turns from real to complex, or back.
struct Leg {
  std::vector<Box> before, after;  // by rank
  std::vector<std::size_t> axes;   // in rising order; none: nothing is transformed
  bool turns = false;              // real to complex, or back
};

// The requested transform, the same on all ranks. A value.
struct Wanted {
  Extents shape;          // shape of the real array, if the transform has one
  std::size_t first = 0;  // first axis that is transformed; all later ones are, too
  FftKind kind = FftKind::kComplex;
};

// Returns the legs, at least one. The first starts at the boxes `from`, and the last ends at `to`.
std::vector<Leg> route(const Wanted& wanted, std::vector<Box> from, std::vector<Box> to);

// The array's shape before the transform, and after it.
Extents shape_before(const Wanted& wanted);
Extents shape_after(const Wanted& wanted);

// Cuts `shape` into one box for each rank, as equal as possible, so that the axes of `whole` stay
// whole.
std::vector<Box> cut(const Extents& shape, std::size_t ranks, const std::vector<bool>& whole);

}  // namespace hocket::fft
