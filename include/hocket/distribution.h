// How one large array is spread over ranks: slabs, boxes, blocks.
//
// All types here are values: arithmetic on indices, no communication. Extents are elements along
// each axis of the whole array, the first axis first. A rank may hold nothing.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hocket/abi.h"

namespace hocket {

using Extents = std::vector<std::size_t>;

std::size_t count_of(std::span<const std::size_t> extents) noexcept;

// The elements with lower[i] <= index[i] < upper[i]. Throws InvalidArgument where the two differ in
// length or lower is above upper.
class Box {
 public:
  Box() = default;
  Box(Extents lower, Extents upper);

  const Extents& lower() const noexcept { return lower_; }
  const Extents& upper() const noexcept { return upper_; }
  std::size_t axes() const noexcept { return lower_.size(); }
  Extents shape() const;
  std::size_t count() const noexcept;
  bool is_empty() const noexcept { return count() == 0; }
  bool operator==(const Box&) const = default;

 private:
  Extents lower_, upper_;
};

// What two boxes share; empty where they do not meet.
Box intersection(const Box& a, const Box& b);
// The smallest box around both; an empty one does not count.
Box hull(const Box& a, const Box& b);
// "[0, 2) x [3, 7)", for messages.
std::string to_string(const Box& box);

// Cut along one axis into one slab a rank, the first ones longer by one where it does not divide.
struct Slab {
  std::size_t axis = 0;

  // Of `rank` among `ranks`. Throws InvalidArgument where the array has no such axis.
  Box box(const Extents& shape, int rank, int ranks) const;
};

// Ranks in a grid.
class ProcessGrid {
 public:
  enum class Layout { kRowMajor, kColumnMajor };

  // Throws InvalidArgument where an extent is zero.
  explicit ProcessGrid(Extents shape, Layout layout = Layout::kRowMajor);
  // The rank at each place, row-major. Throws InvalidArgument where it is no permutation.
  ProcessGrid(Extents shape, std::vector<int> ranks);

  const Extents& shape() const noexcept { return shape_; }
  int size() const noexcept { return static_cast<int>(ranks_.size()); }
  // Where a rank stands, and who stands somewhere. Throw InvalidArgument outside the grid.
  Extents place_of(int rank) const;
  int rank_at(const Extents& place) const;

 private:
  Extents shape_;
  std::vector<int> ranks_;  // row-major
};

// Blocks of one size dealt out to the grid's places in turn, along each axis by itself. The array
// of a rank is its blocks put together, in their order.
class BlockCyclic {
 public:
  // `first`: the place that has the first block. Throws InvalidArgument where lengths differ, a
  // block is empty, or the first place is outside the grid.
  BlockCyclic(ProcessGrid grid, Extents block, Extents first = {});

  const ProcessGrid& grid() const noexcept { return grid_; }
  const Extents& block() const noexcept { return block_; }
  // Of a rank's array.
  Extents shape(const Extents& global, int rank) const;
  // Where an element of a rank's array is in the whole, and which rank has an element of the whole.
  Extents global_index(int rank, const Extents& local) const;
  int owner(const Extents& index) const;

 private:
  ProcessGrid grid_;
  Extents block_, first_;
};

// One block a rank, as equal as blocks of one size can be: all but the last ones are full.
struct BlockNonCyclic {
  ProcessGrid grid;

  // The same as blocks dealt out in turn, for one array.
  BlockCyclic bound(const Extents& global) const;
  Box box(const Extents& global, int rank) const;
};

}  // namespace hocket
