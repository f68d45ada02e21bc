// Ranks as a grid. python/hocket/grid.py sends the same messages in the same order, so that ranks
// of both languages may take part in an exchange.
#include "hocket/grid.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "calls/composed/strided_checks.h"
#include "calls/world/communicator_impl.h"

namespace hocket {

namespace {

std::vector<int> whole_shape(std::vector<int> shape, int size) {
  const std::vector<int> given = shape;
  long known = 1;
  std::size_t open = shape.size();
  int number_open = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == -1) {
      open = axis;
      ++number_open;
    } else if (known != 0) {
      known = shape[axis] < 1 || shape[axis] > size ? 0 : known * shape[axis];
      if (known > size) known = 0;
    }
  }
  if (number_open == 1 && known > 0 && size % known == 0) {
    shape[open] = static_cast<int>(size / known);
    known = size;
    number_open = 0;
  }
  if (shape.empty() || number_open != 0 || known != size) {
    throw InvalidArgument(fmt::format(
        "a grid of ({}) does not have the communicator's {} ranks", fmt::join(given, ", "), size));
  }
  return shape;
}

// The exchange in one direction along an axis: `mine` goes to `destination`, and `border` comes
// from `source`.
struct Direction {
  int destination;
  StridedView mine;
  int source;
  StridedView border;
};

}  // namespace

Grid::Grid(const Communicator& comm, std::vector<int> shape, std::vector<bool> periodic)
    : comm_(static_cast<const std::shared_ptr<world::CommunicatorImpl>&>(comm.impl())),
      shape_(whole_shape(std::move(shape), comm.size())),
      periodic_(std::move(periodic)) {
  if (periodic_.empty()) periodic_.resize(shape_.size());
  if (periodic_.size() != shape_.size()) {
    throw InvalidArgument(fmt::format(
        "periodic has {} entries, and the grid {} axes", periodic_.size(), shape_.size()));
  }
}

std::vector<int> Grid::coordinates() const { return coordinates_of(comm_.rank()); }

std::vector<int> Grid::coordinates_of(int rank) const {
  if (rank < 0 || rank >= comm_.size()) {
    throw InvalidArgument(fmt::format("rank is {}, expected 0 to {}", rank, comm_.size() - 1));
  }
  std::vector<int> found(shape_.size());
  for (std::size_t axis = shape_.size(); axis-- > 0;) {
    found[axis] = rank % shape_[axis];
    rank /= shape_[axis];
  }
  return found;
}

int Grid::rank_of(std::span<const int> coordinates) const {
  if (coordinates.size() != shape_.size()) {
    throw InvalidArgument(fmt::format(
        "coordinates has {} entries, and the grid {} axes", coordinates.size(), shape_.size()));
  }
  int rank = 0;
  for (std::size_t axis = 0; axis < shape_.size(); ++axis) {
    const int extent = shape_[axis];
    const int place = coordinates[axis];
    if (!periodic_[axis] && (place < 0 || place >= extent)) return kNullRank;
    rank = rank * extent + (place % extent + extent) % extent;
  }
  return rank;
}

Shift Grid::shift(int axis, int distance) const {
  return {.source = beside(axis, -std::int64_t{distance}), .destination = beside(axis, distance)};
}

int Grid::beside(int axis, std::int64_t distance) const {
  const int axes = static_cast<int>(shape_.size());
  if (axis < 0 || axis >= axes) {
    throw InvalidArgument(fmt::format("axis is {}, and the grid has {}", axis, axes));
  }
  std::vector<int> place = coordinates();
  const int extent = shape_[static_cast<std::size_t>(axis)];
  int& along = place[static_cast<std::size_t>(axis)];
  // A distance of any size must not overflow.
  const bool is_periodic = periodic_[static_cast<std::size_t>(axis)];
  along = !is_periodic && (distance > extent || distance < -extent)
              ? -1
              : along + static_cast<int>(is_periodic ? distance % extent : distance);
  return rank_of(place);
}

void Grid::neighbour_exchange(const StridedView& x,
                              std::size_t width,
                              const MessageOptions& options) {
  neighbour_exchange(x, std::vector(shape_.size(), Halo{width, width}), options);
}

void Grid::neighbour_exchange(const StridedView& x,
                              std::span<const Halo> halo,
                              const MessageOptions& options) {
  const std::size_t axes = shape_.size();
  if (halo.size() != axes || x.shape.size() < axes) {
    throw InvalidArgument(fmt::format("halo has {} entries, the array {} axes, and the grid {}",
                                      halo.size(),
                                      x.shape.size(),
                                      axes));
  }
  composed::require_writable(x, "x");
  std::vector<Direction> directions;
  for (std::size_t axis = 0; axis < axes; ++axis) {
    const auto [before, behind] = halo[axis];
    const std::size_t cells = x.shape[axis];
    const std::size_t most = std::max(before, behind);
    if (most > cells || cells - most < before || cells - most - before < behind) {
      throw InvalidArgument(fmt::format(
          "along axis {} the array has {} cells, which is too few for a border of {} and {} and as "
          "many within",
          axis,
          cells,
          before,
          behind));
    }
    const auto [lower, upper] = shift(static_cast<int>(axis));
    const std::size_t end = cells - behind;
    // Two ranks that are neighbours on both sides pair their messages in this order.
    if (behind != 0) {
      directions.push_back(
          {lower, x.part(axis, before, before + behind), upper, x.part(axis, end, end + behind)});
    }
    if (before != 0) {
      directions.push_back(
          {upper, x.part(axis, end - before, end), lower, x.part(axis, 0, before)});
    }
  }
  for (const Direction& one : directions) {
    if (one.destination == kNullRank && one.source == kNullRank) continue;
    send_recv_strided(comm_, one.mine, one.destination, one.border, one.source, options);
  }
}

}  // namespace hocket
