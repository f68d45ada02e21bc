#include "interfaces/mpi/files/view.h"

#include <algorithm>

#include "interfaces/mpi/buffers.h"
#include "interfaces/mpi/failure.h"

namespace hocket::mpi {
namespace {

using Run = std::function<bool(std::int64_t, std::int64_t)>;
using Shape = Layout::Shape;

// Packed bytes of a layout. A value.
struct Range {
  std::int64_t begin, end;
  Range within(std::int64_t start, std::int64_t size) const noexcept {
    return {std::max<std::int64_t>(begin - start, 0), std::min(end - start, size)};
  }
};

bool visit(const Layout& layout, std::int64_t base, Range range, const Run& run);

template <typename Place>
bool visit_bodies(const Layout& body, Range range, const Place& place, const Run& run) {
  for (std::int64_t i = range.begin / body.size; i * body.size < range.end; ++i) {
    if (!visit(body, place(i), range.within(i * body.size, body.size), run)) return false;
  }
  return true;
}

// The first of these parts that ends behind `begin`.
template <typename Parts>
auto first_behind(const Parts& parts, std::int64_t begin) {
  const auto next =
      std::upper_bound(parts.begin(), parts.end(), begin, [](std::int64_t at, const auto& part) {
        return at < part.start;
      });
  return next == parts.begin() ? next : std::prev(next);
}

bool visit(const Layout& layout, std::int64_t base, Range range, const Run& run) {
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
        const Range part = range.within(piece->start, piece->length);
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

std::int64_t fitting(std::optional<std::int64_t> number) {
  if (!number) fail(MPI_ERR_ARG, "offset is beyond what a file can have");
  return *number;
}

}  // namespace

void View::check() const {
  require(displacement >= 0, MPI_ERR_ARG, "disp is negative");
  require(etype->size() > 0, MPI_ERR_TYPE, "etype has no bytes");
  require(filetype->size() > 0 && filetype->size() % etype->size() == 0,
          MPI_ERR_TYPE,
          "filetype is not made of whole etypes");
  require(filetype->true_lb() >= 0, MPI_ERR_TYPE, "filetype has a negative displacement");
  require(filetype->extent() >= filetype->true_extent(),
          MPI_ERR_TYPE,
          "filetype overlaps with its next copy");
  std::int64_t last = 0;
  bool is_in_order = true;
  visit(filetype->map().bytes(), 0, {0, filetype->size()}, [&](auto place, auto length) {
    is_in_order = is_in_order && place >= last;
    last = place + length;
    return is_in_order;
  });
  require(is_in_order, MPI_ERR_TYPE, "filetype goes backwards in the file");
}

void View::each_run(std::int64_t begin, std::int64_t end, const Run& run) const {
  if (begin >= end) return;
  const std::int64_t size = filetype->size(), extent = filetype->extent();
  const auto last = checked_multiply((end - 1) / size, extent);
  const auto behind =
      last ? checked_add(*last, filetype->true_lb() + filetype->true_extent()) : last;
  fitting(behind ? checked_add(*behind, displacement) : behind);
  if (is_dense(*filetype)) {
    run(displacement + filetype->true_lb() + begin, end - begin);
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
    visit(filetype->map().bytes(),
          displacement + i * extent,
          Range{begin, end}.within(i * size, size),
          merge);
  }
  if (goes_on && length > 0) run(place, length);
}

std::int64_t View::place_of(std::int64_t byte) const {
  std::int64_t found = 0;
  each_run(byte, fitting(checked_add(byte, 1)), [&](auto place, auto) {
    found = place;
    return false;
  });
  return found;
}

std::int64_t View::end_in_etypes(std::int64_t file_size) const {
  const std::int64_t seen = std::max<std::int64_t>(file_size - displacement, 0);
  const std::int64_t copies = seen / filetype->extent();
  const std::int64_t rest = seen % filetype->extent();
  std::int64_t bytes = copies * filetype->size();
  visit(filetype->map().bytes(), 0, {0, filetype->size()}, [&](auto place, auto length) {
    bytes += std::clamp<std::int64_t>(rest - place, 0, length);
    return place < rest;
  });
  return (bytes + etype->size() - 1) / etype->size();
}

std::int64_t View::bytes_at(std::int64_t etypes) const {
  return fitting(checked_multiply(etypes, etype->size()));
}

}  // namespace hocket::mpi
