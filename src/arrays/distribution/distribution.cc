#include "hocket/distribution.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "foundation/base/enumerator.h"
#include "hocket/error.h"

namespace hocket {
namespace {

// Returns the indices of element `at` in an array of `shape`, in C order.
Extents unravel(std::size_t at, const Extents& shape) {
  Extents place(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    place[i] = at % shape[i];
    at /= shape[i];
  }
  return place;
}

std::size_t ravel(const Extents& place, const Extents& shape) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < shape.size(); ++i) at = at * shape[i] + place[i];
  return at;
}

void require_axes(const Extents& given, std::size_t wanted, const char* name) {
  if (given.size() == wanted) return;
  throw InvalidArgument(fmt::format(
      "{} has {} entries, expected one for each of {} axes", name, given.size(), wanted));
}

std::vector<int> numbered(const Extents& shape, ProcessGrid::Layout layout) {
  std::vector<int> ranks(count_of(shape));
  for (std::size_t at = 0; at < ranks.size(); ++at) {
    Extents place = unravel(at, shape);
    if (layout == ProcessGrid::Layout::kRowMajor) {
      ranks[at] = static_cast<int>(at);
    } else {
      const Extents turned(shape.rbegin(), shape.rend());
      std::reverse(place.begin(), place.end());
      ranks[at] = static_cast<int>(ravel(place, turned));
    }
  }
  return ranks;
}

void require_extents(const Extents& shape) {
  constexpr std::size_t kMost = std::numeric_limits<int>::max();  // a communicator's largest size
  std::size_t places = 1;
  for (const std::size_t extent : shape) {
    if (extent != 0 && places > kMost / extent) {
      throw InvalidArgument(
          fmt::format("a process grid of shape ({}) has more places than ranks can be",
                      fmt::join(shape, ", ")));
    }
    places *= extent;
  }
  if (!shape.empty() && places > 0) return;
  throw InvalidArgument(
      fmt::format("a process grid of shape ({}) has no places", fmt::join(shape, ", ")));
}

// Returns how many of `n` elements place `at` of `places` has. Blocks are dealt out cyclically,
// beginning with place `first`.
std::size_t dealt(
    std::size_t n, std::size_t block, std::size_t at, std::size_t first, std::size_t places) {
  const std::size_t turn = (at + places - first) % places;
  const std::size_t whole = n / block;
  std::size_t mine = whole / places * block;
  if (turn < whole % places) mine += block;
  if (turn == whole % places) mine += n % block;
  return mine;
}

}  // namespace

std::size_t count_of(std::span<const std::size_t> extents) noexcept {
  std::size_t count = 1;
  for (const std::size_t extent : extents) count *= extent;
  return count;
}

// --- Box ----------------------------------------------------------------------------------------

Box::Box(Extents lower, Extents upper) : lower_(std::move(lower)), upper_(std::move(upper)) {
  require_axes(upper_, lower_.size(), "upper");
  for (std::size_t i = 0; i < lower_.size(); ++i) {
    if (lower_[i] > upper_[i]) {
      throw InvalidArgument(fmt::format("lower ({}) is above upper ({}) on axis {}",
                                        fmt::join(lower_, ", "),
                                        fmt::join(upper_, ", "),
                                        i));
    }
  }
}

Extents Box::shape() const {
  Extents shape(axes());
  for (std::size_t i = 0; i < axes(); ++i) shape[i] = upper_[i] - lower_[i];
  return shape;
}

std::size_t Box::count() const noexcept {
  if (axes() == 0) return 0;
  std::size_t count = 1;
  for (std::size_t i = 0; i < axes(); ++i) count *= upper_[i] - lower_[i];
  return count;
}

Box intersection(const Box& a, const Box& b) {
  require_axes(b.lower(), a.axes(), "the second box");
  Extents lower(a.axes()), upper(a.axes());
  for (std::size_t i = 0; i < a.axes(); ++i) {
    lower[i] = std::max(a.lower()[i], b.lower()[i]);
    upper[i] = std::max(lower[i], std::min(a.upper()[i], b.upper()[i]));
  }
  return {std::move(lower), std::move(upper)};
}

Box hull(const Box& a, const Box& b) {
  if (a.is_empty()) return b;
  if (b.is_empty()) return a;
  require_axes(b.lower(), a.axes(), "the second box");
  Extents lower(a.axes()), upper(a.axes());
  for (std::size_t i = 0; i < a.axes(); ++i) {
    lower[i] = std::min(a.lower()[i], b.lower()[i]);
    upper[i] = std::max(a.upper()[i], b.upper()[i]);
  }
  return {std::move(lower), std::move(upper)};
}

std::string to_string(const Box& box) {
  std::vector<std::string> sides;
  for (std::size_t i = 0; i < box.axes(); ++i) {
    sides.push_back(fmt::format("[{}, {})", box.lower()[i], box.upper()[i]));
  }
  return fmt::format("{}", fmt::join(sides, " x "));
}

// --- Slab ---------------------------------------------------------------------------------------

Box Slab::box(const Extents& shape, int rank, int ranks) const {
  if (axis >= shape.size()) {
    throw InvalidArgument(fmt::format("axis is {}, and the array has {} axes", axis, shape.size()));
  }
  if (rank < 0 || rank >= ranks) {
    throw InvalidArgument(fmt::format("rank is {}, expected 0 to {}", rank, ranks - 1));
  }
  const auto r = static_cast<std::size_t>(rank), n = static_cast<std::size_t>(ranks);
  const auto cut = [&](std::size_t i) {
    return i * (shape[axis] / n) + std::min(i, shape[axis] % n);
  };
  Extents lower(shape.size(), 0), upper = shape;
  lower[axis] = cut(r);
  upper[axis] = cut(r + 1);
  return {std::move(lower), std::move(upper)};
}

// --- ProcessGrid --------------------------------------------------------------------------------

ProcessGrid::ProcessGrid(Extents shape, Layout layout) : shape_(std::move(shape)) {
  require_extents(shape_);
  base::require_enumerator(layout, Layout::kColumnMajor, "layout", "ProcessGrid::Layout");
  ranks_ = numbered(shape_, layout);
}

ProcessGrid::ProcessGrid(Extents shape, std::vector<int> ranks)
    : shape_(std::move(shape)), ranks_(std::move(ranks)) {
  require_extents(shape_);
  std::vector<int> sorted = ranks_;
  std::sort(sorted.begin(), sorted.end());
  if (sorted != numbered({count_of(shape_)}, Layout::kRowMajor)) {
    throw InvalidArgument(fmt::format("ranks is ({}), expected each of 0 to {} once",
                                      fmt::join(ranks_, ", "),
                                      count_of(shape_) - 1));
  }
}

Extents ProcessGrid::place_of(int rank) const {
  const auto found = std::find(ranks_.begin(), ranks_.end(), rank);
  if (found == ranks_.end()) {
    throw InvalidArgument(fmt::format("rank is {}, and the grid has 0 to {}", rank, size() - 1));
  }
  return unravel(static_cast<std::size_t>(found - ranks_.begin()), shape_);
}

int ProcessGrid::rank_at(const Extents& place) const {
  require_axes(place, shape_.size(), "place");
  for (std::size_t i = 0; i < place.size(); ++i) {
    if (place[i] >= shape_[i]) {
      throw InvalidArgument(fmt::format("place ({}) is outside the grid of shape ({})",
                                        fmt::join(place, ", "),
                                        fmt::join(shape_, ", ")));
    }
  }
  return ranks_[ravel(place, shape_)];
}

// --- Blocks -------------------------------------------------------------------------------------

BlockCyclic::BlockCyclic(ProcessGrid grid, Extents block, Extents first)
    : grid_(std::move(grid)), block_(std::move(block)), first_(std::move(first)) {
  require_axes(block_, grid_.shape().size(), "block");
  // The product of the extents may overflow, so each one is checked.
  if (std::ranges::find(block_, std::size_t{0}) != block_.end()) {
    throw InvalidArgument(
        fmt::format("block is ({}), expected at least 1 on each axis", fmt::join(block_, ", ")));
  }
  if (first_.empty()) first_.resize(block_.size());
  grid_.rank_at(first_);
}

Extents BlockCyclic::shape(const Extents& global, int rank) const {
  require_axes(global, block_.size(), "the array's shape");
  const Extents place = grid_.place_of(rank);
  Extents shape(global.size());
  for (std::size_t i = 0; i < shape.size(); ++i) {
    shape[i] = dealt(global[i], block_[i], place[i], first_[i], grid_.shape()[i]);
  }
  return shape;
}

Extents BlockCyclic::global_index(int rank, const Extents& local) const {
  require_axes(local, block_.size(), "local");
  const Extents place = grid_.place_of(rank);
  Extents index(local.size());
  for (std::size_t i = 0; i < index.size(); ++i) {
    const std::size_t places = grid_.shape()[i];
    const std::size_t turn = (place[i] + places - first_[i]) % places;
    index[i] = (local[i] / block_[i] * places + turn) * block_[i] + local[i] % block_[i];
  }
  return index;
}

int BlockCyclic::owner(const Extents& index) const {
  require_axes(index, block_.size(), "index");
  Extents place(index.size());
  for (std::size_t i = 0; i < index.size(); ++i) {
    place[i] = (index[i] / block_[i] + first_[i]) % grid_.shape()[i];
  }
  return grid_.rank_at(place);
}

BlockCyclic BlockNonCyclic::bound(const Extents& global) const {
  require_axes(global, grid.shape().size(), "the array's shape");
  Extents block(global.size());
  for (std::size_t i = 0; i < block.size(); ++i) {
    const std::size_t places = grid.shape()[i];
    block[i] = std::max<std::size_t>(1, (global[i] + places - 1) / places);
  }
  return {grid, std::move(block)};
}

Box BlockNonCyclic::box(const Extents& global, int rank) const {
  const BlockCyclic blocks = bound(global);
  const Extents place = grid.place_of(rank);
  Extents lower(global.size()), upper(global.size());
  for (std::size_t i = 0; i < lower.size(); ++i) {
    lower[i] = std::min(global[i], place[i] * blocks.block()[i]);
    upper[i] = std::min(global[i], lower[i] + blocks.block()[i]);
  }
  return {std::move(lower), std::move(upper)};
}

}  // namespace hocket
