// One axis of a matrix, cut over the places of a grid: arithmetic on indices.
#pragma once

#include <cstddef>
#include <vector>

namespace hocket::matmul {

// The elements [begin, end) of an axis, contiguous at one place from `local` on.
struct AxisPart {
  std::size_t begin = 0, end = 0, place = 0, local = 0;
};

// An axis that is divided over places. The stretches are in order, without gaps. A value.
struct Axis {
  std::size_t length = 0;
  std::vector<AxisPart> stretches;
  std::vector<std::size_t> held;  // elements, by place

  std::size_t places() const noexcept { return held.size(); }
};

// Returns an axis whose elements are all at one place.
Axis whole_axis(std::size_t length);
// Returns an axis with one contiguous part at each place, cut as by hocket::Slab.
Axis slab_axis(std::size_t length, std::size_t places);
// Returns an axis whose blocks are dealt out cyclically, beginning with place `first`.
Axis dealt_axis(std::size_t length, std::size_t block, std::size_t places, std::size_t first);
// Returns an axis with all elements at one place: first the elements of place 0, then the elements
// of place 1, and so on.
Axis sorted_axis(const Axis& axis);

// `length` elements that begin at `from` in one array, and at `to` in another.
struct Run {
  std::size_t from = 0, to = 0, length = 0;
};

// Returns the elements that `place` has in `wanted` and `source_place` has in `source`. Both divide
// the same axis.
std::vector<Run> shared_runs(const Axis& wanted,
                             std::size_t place,
                             const Axis& source,
                             std::size_t source_place);
std::size_t total(const std::vector<Run>& runs) noexcept;
// Returns the runs with their sources one after the other, as in packed data.
std::vector<Run> packed_from(std::vector<Run> runs);
// Returns the runs with their targets one after the other.
std::vector<Run> packed_to(std::vector<Run> runs);

}  // namespace hocket::matmul
