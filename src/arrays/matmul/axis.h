// One axis of a matrix, cut over the places of a grid: arithmetic on indices.
#pragma once

#include <cstddef>
#include <vector>

namespace hocket::matmul {

// The elements [begin, end) of an axis, contiguous at one place from `local` on.
struct AxisPart {
  std::size_t begin = 0, end = 0, place = 0, local = 0;
};

// A value. The stretches are in order, without gaps.
struct Axis {
  std::size_t length = 0;
  std::vector<AxisPart> stretches;
  std::vector<std::size_t> held;  // elements, by place

  std::size_t places() const noexcept { return held.size(); }
};

// The axis at one place.
Axis whole_axis(std::size_t length);
// A slab a place, with the cuts of hocket::Slab.
Axis slab_axis(std::size_t length, std::size_t places);
// Blocks dealt out cyclically, the first one to place `first`.
Axis dealt_axis(std::size_t length, std::size_t block, std::size_t places, std::size_t first);
// The same elements at one place: those of place 0 first, then those of place 1, and so on.
Axis sorted_axis(const Axis& axis);

// `length` elements that begin at `from` in one array, and at `to` in another.
struct Run {
  std::size_t from = 0, to = 0, length = 0;
};

// The elements that `place` of `wanted` wants and `source_place` of `source` holds, on the same
// axis.
std::vector<Run> shared_runs(const Axis& wanted,
                             std::size_t place,
                             const Axis& source,
                             std::size_t source_place);
std::size_t total(const std::vector<Run>& runs) noexcept;
// The same runs, contiguous in the source, as it is packed.
std::vector<Run> packed_from(std::vector<Run> runs);
// The same runs, contiguous in the target.
std::vector<Run> packed_to(std::vector<Run> runs);

}  // namespace hocket::matmul
