#include "interfaces/mpi/types/runs.h"

#include <algorithm>

namespace hocket::mpi {
namespace {

using Shape = Layout::Shape;

// A range of the packed bytes of a layout. A value.
struct PackedRange {
  std::int64_t begin, end;
  PackedRange within(std::int64_t start, std::int64_t size) const noexcept {
    return {std::max<std::int64_t>(begin - start, 0), std::min(end - start, size)};
  }
};

bool visit(const Layout& layout, std::int64_t base, PackedRange range, const Run& run);

template <typename Place>
bool visit_bodies(const Layout& body, PackedRange range, const Place& place, const Run& run) {
  for (std::int64_t i = range.begin / body.size; i * body.size < range.end; ++i) {
    if (!visit(body, place(i), range.within(i * body.size, body.size), run)) return false;
  }
  return true;
}

// Returns the first part that ends after `begin`.
template <typename Parts>
auto first_behind(const Parts& parts, std::int64_t begin) {
  const auto next =
      std::upper_bound(parts.begin(), parts.end(), begin, [](std::int64_t at, const auto& part) {
        return at < part.start;
      });
  return next == parts.begin() ? next : std::prev(next);
}

bool visit(const Layout& layout, std::int64_t base, PackedRange range, const Run& run) {
  if (range.begin >= range.end) return true;
  base += layout.offset;
  switch (layout.shape) {
    case Shape::kEmpty:
      return true;
    case Shape::kRun:
      return run(base + range.begin, range.end - range.begin);
    case Shape::kLoop:
      return visit_bodies(
          *layout.body, range, [&](std::int64_t i) { return base + i * layout.stride; }, run);
    case Shape::kList:
      return visit_bodies(
          *layout.body,
          range,
          [&](std::int64_t i) { return base + (*layout.list)[static_cast<std::size_t>(i)]; },
          run);
    case Shape::kPieces:
      for (auto piece = first_behind(*layout.pieces, range.begin);
           piece != layout.pieces->end() && piece->start < range.end;
           ++piece) {
        const PackedRange part = range.within(piece->start, piece->length);
        if (part.begin >= part.end) continue;
        if (!run(base + piece->offset + part.begin, part.end - part.begin)) return false;
      }
      return true;
    case Shape::kSequence:
      for (auto part = first_behind(*layout.parts, range.begin);
           part != layout.parts->end() && part->start < range.end;
           ++part) {
        if (!visit(part->layout, base, range.within(part->start, part->layout.size), run)) {
          return false;
        }
      }
      return true;
  }
  return true;
}

}  // namespace

bool each_run_of_layout(const Layout& layout, const Run& run) {
  return visit(layout, 0, {0, layout.size}, run);
}

void each_run(
    const Datatype& type, std::int64_t base, std::int64_t begin, std::int64_t end, const Run& run) {
  if (begin >= end) return;
  const std::int64_t size = type.size(), extent = type.extent();
  if (type.is_contiguous() && size == extent) {
    run(base + type.true_lb() + begin, end - begin);
    return;
  }
  std::int64_t place = 0, length = 0;
  bool goes_on = true;
  const auto merge = [&](std::int64_t next, std::int64_t more) {
    if (length > 0 && place + length == next) {
      length += more;
      return true;
    }
    if (length > 0) goes_on = run(place, length);
    place = next;
    length = more;
    return goes_on;
  };
  for (std::int64_t i = begin / size; i * size < end && goes_on; ++i) {
    visit(type.map().bytes(),
          base + i * extent,
          PackedRange{begin, end}.within(i * size, size),
          merge);
  }
  if (goes_on && length > 0) run(place, length);
}

}  // namespace hocket::mpi
