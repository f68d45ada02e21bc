// The ranks of a communicator as a grid: the neighbours of a rank, and the borders of arrays that
// neighbours hold.
//
//     hocket::Grid grid(comm, {2, -1}, {false, true});
//     auto [source, destination] = grid.shift(0);
//     grid.neighbour_exchange(hocket::strided(field.data(), {rows + 2, columns + 2}));
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "hocket/communicator.h"
#include "hocket/strided.h"

namespace hocket {

// The two peers of this rank in a shift along an axis: it receives from `source` and sends to
// `destination`. A peer beyond an end of the grid is kNullRank.
struct Shift {
  int source = kNullRank;
  int destination = kNullRank;
};

// The width of a border along an axis: cells before and behind this rank's own ones.
struct Halo {
  std::size_t before = 1;
  std::size_t behind = 1;
};

// A resource that keeps its communicator alive. It can be moved but not copied. Ranks have places
// in C order: the last axis changes first. Threads may use it as they may use the communicator.
class Grid {
 public:
  // All ranks of the communicator form the grid. Local.
  // @param comm The communicator.
  // @param shape Number of ranks along each axis. One entry may be -1; it is computed from the
  //   others.
  // @param periodic True for each axis whose two ends are neighbours. Empty: none is.
  // @throws InvalidArgument if the shape does not have the communicator's number of ranks.
  Grid(const Communicator& comm, std::vector<int> shape, std::vector<bool> periodic = {});

  const std::vector<int>& shape() const noexcept { return shape_; }
  const std::vector<bool>& periodic() const noexcept { return periodic_; }
  // Returns the place of this rank, or of any rank.
  std::vector<int> coordinates() const;
  std::vector<int> coordinates_of(int rank) const;
  // Returns the rank at a place; kNullRank beyond an end that is not periodic.
  int rank_of(std::span<const int> coordinates) const;
  // Returns the peers of this rank if every rank sends to the rank that is `distance` steps ahead.
  // @param axis Number of the axis.
  // @param distance Number of steps to pass it on; negative the other way.
  Shift shift(int axis, int distance = 1) const;

  // Fills the border of this rank's part from its neighbours, including corners. All ranks make the
  // call, which is made of messages. Without a neighbour the border stays as it is.
  // @param x This rank's part with its border around it. Its first axes are the grid's. Parts may
  //   differ in size along an axis, between ranks at different places on it.
  // @param halo The border along each axis of the grid.
  // @param options The tag, and the limit for the messages of each axis. The stream does not apply.
  // @throws InvalidArgument, and sends nothing, for arguments that it refuses. The neighbours then
  //   wait until the deadline.
  void neighbour_exchange(const StridedView& x,
                          std::span<const Halo> halo,
                          const MessageOptions& options = {});
  // Does the same with a border of one width everywhere.
  void neighbour_exchange(const StridedView& x,
                          std::size_t width = 1,
                          const MessageOptions& options = {});

 private:
  int beside(int axis, std::int64_t distance) const;

  Communicator comm_;
  std::vector<int> shape_;
  std::vector<bool> periodic_;
};

}  // namespace hocket
