// Distributions of one large array over ranks: slabs, boxes, blocks.
//
// All types here are values: arithmetic on indices, without communication. Any thread may use them.
// Extents are numbers of elements along each axis of the whole array, first axis first. A rank may
// hold no element.
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

// Returns the number of elements of an array with these extents.
std::size_t count_of(std::span<const std::size_t> extents) noexcept;

// The set of indices with lower[i] <= index[i] < upper[i] on each axis i.
class Box {
 public:
  Box() = default;
  // @param lower Inclusive lower bounds.
  // @param upper Exclusive upper bounds.
  // @throws InvalidArgument if the lengths differ, or a lower bound is above its upper bound.
  Box(Extents lower, Extents upper);

  const Extents& lower() const noexcept { return lower_; }
  const Extents& upper() const noexcept { return upper_; }
  std::size_t axes() const noexcept { return lower_.size(); }
  // Returns the extents of the box along each axis.
  Extents shape() const;
  // Returns the number of elements.
  std::size_t count() const noexcept;
  bool is_empty() const noexcept { return count() == 0; }
  bool operator==(const Box&) const = default;

 private:
  Extents lower_, upper_;
};

// Returns the intersection of two boxes. It is empty if they do not overlap.
Box intersection(const Box& a, const Box& b);
// Returns the smallest box that contains both. An empty box is ignored.
Box hull(const Box& a, const Box& b);
// Formats a box for messages: "[0, 2) x [3, 7)".
std::string to_string(const Box& box);

// A distribution that cuts the array along one axis into one slab for each rank. If the extent does
// not divide, the first slabs are longer by one.
struct Slab {
  std::size_t axis = 0;

  // Returns the slab of `rank`.
  // @param shape Extents of the whole array.
  // @param rank The rank, from 0.
  // @param ranks Number of ranks.
  // @throws InvalidArgument if the array has no such axis.
  Box box(const Extents& shape, int rank, int ranks) const;
};

// An arrangement of ranks in a grid.
class ProcessGrid {
 public:
  enum class Layout { kRowMajor, kColumnMajor };

  // @param shape Extents of the grid. The number of ranks is their product.
  // @param layout Order in which ranks fill the grid.
  // @throws InvalidArgument if an extent is zero.
  explicit ProcessGrid(Extents shape, Layout layout = Layout::kRowMajor);
  // @param shape Extents of the grid.
  // @param ranks The rank at each position, in row-major order.
  // @throws InvalidArgument if `ranks` is not a permutation.
  ProcessGrid(Extents shape, std::vector<int> ranks);

  const Extents& shape() const noexcept { return shape_; }
  int size() const noexcept { return static_cast<int>(ranks_.size()); }
  // Convert between a rank and its position in the grid.
  // @throws InvalidArgument outside the grid.
  Extents place_of(int rank) const;
  int rank_at(const Extents& place) const;

 private:
  Extents shape_;
  std::vector<int> ranks_;  // row-major
};

// A block-cyclic distribution: blocks of one size are dealt to the grid's positions in turn, along
// each axis. A rank's array consists of its blocks, in their order.
class BlockCyclic {
 public:
  // @param grid The ranks.
  // @param block Extents of a block.
  // @param first Position that holds the first block. By default the first position of the grid.
  // @throws InvalidArgument if the lengths differ, a block is empty, or `first` is outside the
  //   grid.
  BlockCyclic(ProcessGrid grid, Extents block, Extents first = {});

  const ProcessGrid& grid() const noexcept { return grid_; }
  const Extents& block() const noexcept { return block_; }
  // Returns the extents of the array that `rank` holds.
  Extents shape(const Extents& global, int rank) const;
  // Returns the index in the whole array of an element of a rank's array.
  Extents global_index(int rank, const Extents& local) const;
  // Returns the rank that holds an element of the whole array.
  int owner(const Extents& index) const;

 private:
  ProcessGrid grid_;
  Extents block_, first_;
};

// A distribution with one block for each rank. All blocks have one size, except the last ones,
// which may be smaller or empty.
struct BlockNonCyclic {
  ProcessGrid grid;

  // Returns the block-cyclic distribution that spreads an array of this shape in the same way.
  BlockCyclic bound(const Extents& global) const;
  // Returns the block of `rank` in the whole array.
  Box box(const Extents& global, int rank) const;
};

}  // namespace hocket
