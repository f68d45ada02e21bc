#include "arrays/fft/route.h"

#include <algorithm>
#include <optional>

namespace hocket::fft {
namespace {

bool is_whole(const std::vector<Box>& boxes, std::size_t axis, std::size_t extent) {
  return std::all_of(boxes.begin(), boxes.end(), [&](const Box& box) {
    return box.is_empty() || (box.lower()[axis] == 0 && box.upper()[axis] == extent);
  });
}

// Returns the box of the spectrum of a real box. The real box has the whole last axis, or is empty.
Box turned(const Box& box, std::size_t length) {
  Extents lower = box.lower(), upper = box.upper();
  lower.back() = 0;
  upper.back() = box.is_empty() ? 0 : length;
  return {std::move(lower), std::move(upper)};
}

std::vector<Box> turned(const std::vector<Box>& boxes, std::size_t length) {
  std::vector<Box> result;
  for (const Box& box : boxes) result.push_back(turned(box, length));
  return result;
}

// The distribution of ranks over at most two axes. A value.
struct Grid {
  std::size_t axis = 0, places = 1;    // the axis that is cut first
  std::size_t second = 0, others = 1;  // the axis that is cut second
  std::size_t largest = 0;             // elements of the largest box
};

std::size_t part_of(std::size_t extent, std::size_t places) {
  return (extent + places - 1) / places;
}

// Returns the route of a forward transform: from real or complex numbers to complex ones.
std::vector<Leg> route_forward(const Wanted& wanted,
                               std::vector<Box> from,
                               std::vector<Box> to,
                               bool has_real) {
  const std::size_t axes = wanted.shape.size(), last = axes - 1, ranks = from.size();
  const Extents spectrum = has_real ? Fft::spectrum_of(wanted.shape) : wanted.shape;
  bool is_real = has_real;
  std::vector<bool> pending(axes);
  for (std::size_t i = wanted.first; i < axes; ++i) pending[i] = true;
  std::vector<Leg> legs;

  const auto add = [&](std::vector<Box> boxes, const std::vector<bool>& now) {
    Leg leg{.before = boxes, .after = std::move(boxes)};
    for (std::size_t i = 0; i < axes; ++i) {
      if (!now[i]) continue;
      leg.axes.push_back(i);
      pending[i] = false;
    }
    if (is_real && now[last]) {
      leg.turns = true;
      leg.after = turned(leg.after, spectrum[last]);
      is_real = false;
    }
    legs.push_back(std::move(leg));
  };

  std::vector<bool> now(axes), at_end(axes);
  for (std::size_t i = 0; i < axes; ++i) {
    now[i] = pending[i] && is_whole(from, i, wanted.shape[i]);
    at_end[i] = is_whole(to, i, spectrum[i]);
  }
  if (is_real && !now[last]) now.assign(axes, false);  // transform the real axis first
  add(std::move(from), now);
  while (true) {
    // Find the axes that are cut both in the source boxes and in the target boxes.
    for (std::size_t i = 0; i < axes; ++i)
      now[i] = pending[i] && (!at_end[i] || (is_real && i == last));
    const auto left = std::count(now.begin(), now.end(), true);
    if (left == 0) break;
    const Extents& shape = is_real ? wanted.shape : spectrum;
    std::size_t widest = 1;
    for (std::size_t i = 0; i < axes; ++i) {
      if (!now[i]) widest *= shape[i];
    }
    if (left > 1 && widest < ranks) {  // too few slabs for all ranks: pencils
      const std::size_t one =
          is_real ? last
                  : static_cast<std::size_t>(std::find(now.begin(), now.end(), true) - now.begin());
      now.assign(axes, false);
      now[one] = true;
    }
    add(cut(shape, ranks, now), now);
  }
  if (legs.back().after == to &&
      std::none_of(pending.begin(), pending.end(), [](bool left) { return left; })) {
    return legs;
  }
  now = pending;
  add(std::move(to), now);
  return legs;
}

}  // namespace

std::vector<Box> cut(const Extents& shape, std::size_t ranks, const std::vector<bool>& whole) {
  std::vector<std::size_t> free;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (!whole[i]) free.push_back(i);
  }
  std::vector<Box> boxes(ranks, Box(Extents(shape.size()), Extents(shape.size())));
  if (free.empty()) {
    boxes[0] = Box(Extents(shape.size()), shape);
    return boxes;
  }
  std::optional<Grid> best;
  for (const std::size_t axis : free) {
    for (const std::size_t second : free) {
      for (std::size_t others = 1; others <= ranks; ++others) {
        if (ranks % others != 0 || (others > 1 && second <= axis)) continue;
        Grid grid{axis, ranks / others, second, others, count_of(shape)};
        if (shape[axis] > 0) {
          grid.largest = grid.largest / shape[axis] * part_of(shape[axis], grid.places);
        }
        if (shape[second] > 0) {
          grid.largest = others == 1
                             ? grid.largest
                             : grid.largest / shape[second] * part_of(shape[second], others);
        }
        // Prefers fewer cuts, unless more cuts make the largest box smaller by more than a tenth.
        const bool fewer = best && best->others > 1 && others == 1;
        if (!best || grid.largest * 10 < best->largest * 9 ||
            (fewer && grid.largest <= best->largest)) {
          best = grid;
        }
      }
    }
  }
  for (std::size_t r = 0; r < ranks; ++r) {
    const auto side = [](std::size_t at) { return static_cast<int>(at); };
    Extents lower(shape.size()), upper = shape;
    const Box first = Slab{best->axis}.box(shape, side(r / best->others), side(best->places));
    lower[best->axis] = first.lower()[best->axis];
    upper[best->axis] = first.upper()[best->axis];
    if (best->others > 1) {
      const Box other = Slab{best->second}.box(shape, side(r % best->others), side(best->others));
      lower[best->second] = other.lower()[best->second];
      upper[best->second] = other.upper()[best->second];
    }
    boxes[r] = Box(std::move(lower), std::move(upper));
  }
  return boxes;
}

Extents shape_before(const Wanted& wanted) {
  return wanted.kind == FftKind::kComplexToReal ? Fft::spectrum_of(wanted.shape) : wanted.shape;
}

Extents shape_after(const Wanted& wanted) {
  return wanted.kind == FftKind::kRealToComplex ? Fft::spectrum_of(wanted.shape) : wanted.shape;
}

std::vector<Leg> route(const Wanted& wanted, std::vector<Box> from, std::vector<Box> to) {
  if (wanted.kind != FftKind::kComplexToReal) {
    return route_forward(
        wanted, std::move(from), std::move(to), wanted.kind == FftKind::kRealToComplex);
  }
  // An inverse transform takes the forward route from target to source, backwards.
  std::vector<Leg> legs = route_forward(wanted, std::move(to), std::move(from), true);
  std::reverse(legs.begin(), legs.end());
  for (Leg& leg : legs) std::swap(leg.before, leg.after);
  return legs;
}

}  // namespace hocket::fft
