#include "interfaces/mpi/types/layout.h"

#include <algorithm>
#include <utility>

namespace hocket::mpi {
namespace {

using Shape = Layout::Shape;

// Returns whether two layouts differ only in their offsets. Long parts count as equal only if they
// are the same object.
bool have_equal_shape(const Layout& a, const Layout& b, bool by_kind) {
  if (a.shape != b.shape || a.size != b.size) return false;
  if (by_kind && (a.is_mixed != b.is_mixed || a.kind != b.kind)) return false;
  switch (a.shape) {
    case Shape::kEmpty:
    case Shape::kRun:
      return true;
    case Shape::kLoop:
      return a.count == b.count && a.stride == b.stride &&
             (a.body == b.body ||
              (a.body->offset == b.body->offset && have_equal_shape(*a.body, *b.body, by_kind)));
    case Shape::kList:
      return a.list == b.list && a.body == b.body;
    case Shape::kPieces:
      return a.pieces == b.pieces;
    case Shape::kSequence:
      return a.parts == b.parts;
  }
  return false;
}

// Returns `body` repeated at these offsets: as a loop if they are evenly spaced, else as a list.
Layout placed(Layout body, std::vector<std::int64_t> offsets) {
  const std::int64_t first = offsets.front();
  body.offset = 0;
  const auto count = static_cast<std::int64_t>(offsets.size());
  if (count == 1) return moved(std::move(body), first);
  const std::int64_t stride = offsets[1] - offsets[0];
  bool is_even = true;
  for (std::size_t i = 2; is_even && i < offsets.size(); ++i) {
    is_even = offsets[i] - offsets[i - 1] == stride;
  }
  if (is_even) return moved(repeated(body, count, stride), first);
  Layout made = body;
  made.shape = Shape::kList;
  made.size = count * body.size;
  made.elements = count * body.elements;
  made.count = count;
  made.body = std::make_shared<const Layout>(std::move(body));
  made.list = std::make_shared<const std::vector<std::int64_t>>(std::move(offsets));
  made.pieces = {};
  made.parts = {};
  return made;
}

}  // namespace

Layout run_of(Kind kind, std::int64_t elements) {
  if (elements == 0) return {};
  return {
      .shape = Shape::kRun, .kind = kind, .size = elements * size_of(kind), .elements = elements};
}

Layout moved(Layout layout, std::int64_t offset) {
  if (layout.shape != Shape::kEmpty) layout.offset += offset;
  return layout;
}

Layout repeated(const Layout& layout, std::int64_t count, std::int64_t stride) {
  if (count == 0 || layout.shape == Shape::kEmpty) return {};
  if (count == 1) return layout;
  Layout made = layout;
  made.size = count * layout.size;
  made.elements = count * layout.elements;
  if (layout.shape == Shape::kRun && stride == layout.size) return made;
  if (layout.shape == Shape::kLoop) {
    std::int64_t whole = 0;
    if (!__builtin_mul_overflow(layout.count, layout.stride, &whole) && whole == stride) {
      made.count = count * layout.count;
      return made;
    }
  }
  Layout body = layout;
  body.offset = 0;
  made.shape = Shape::kLoop;
  made.count = count;
  made.stride = stride;
  made.body = std::make_shared<const Layout>(std::move(body));
  made.list = {};
  made.pieces = {};
  made.parts = {};
  return made;
}

bool Join::can_be_piece(Kind kind) const {
  return parts_.empty() && (is_empty_ || !by_kind_ || kind == kind_);
}

void Join::add(const Layout& layout) {
  if (layout.shape == Shape::kEmpty) return;
  if (layout.shape == Shape::kRun && !layout.is_mixed) {
    return add_run(layout.kind, layout.offset, layout.elements);
  }
  if (layout.shape == Shape::kRun && can_be_piece(layout.kind)) {
    add_piece(layout.offset, layout.size);
  } else if (layout.shape == Shape::kPieces && can_be_piece(layout.kind)) {
    for (const ByteRun& piece : *layout.pieces) {
      add_piece(layout.offset + piece.offset, piece.length);
    }
  } else {
    add_part(layout);
  }
  count_in(layout.kind, layout.is_mixed, layout.size, layout.elements);
}

void Join::add_run(Kind kind, std::int64_t offset, std::int64_t elements) {
  const std::int64_t size = elements * size_of(kind);
  if (size == 0) return;
  if (can_be_piece(kind)) {
    add_piece(offset, size);
  } else {
    add_part(mpi::moved(run_of(kind, elements), offset));
  }
  count_in(kind, false, size, elements);
}

void Join::add_piece(std::int64_t offset, std::int64_t length) {
  if (!pieces_.empty() && pieces_.back().offset + pieces_.back().length == offset) {
    pieces_.back().length += length;
  } else {
    const std::int64_t start = pieces_.empty() ? 0 : pieces_.back().start + pieces_.back().length;
    pieces_.push_back({offset, length, start});
  }
}

void Join::add_part(const Layout& layout) {
  pieces_become_parts();
  Layout* const last = parts_.empty() ? nullptr : &parts_.back().layout;
  if (last && last->shape == Shape::kRun && layout.shape == Shape::kRun &&
      (!by_kind_ || last->kind == layout.kind) && last->offset + last->size == layout.offset) {
    last->size += layout.size;
    last->elements += layout.elements;
  } else {
    parts_.push_back({layout, size_});
  }
}

void Join::count_in(Kind kind, bool is_mixed, std::int64_t size, std::int64_t elements) {
  if (is_empty_) kind_ = kind;
  is_mixed_ = is_mixed_ || is_mixed || kind != kind_;
  is_empty_ = false;
  size_ += size;
  elements_ += elements;
}

void Join::pieces_become_parts() {
  for (const ByteRun& piece : pieces_) {
    Layout run = run_of(kind_, 1);
    run.elements = piece.length / run.size;
    run.size = piece.length;
    run.offset = piece.offset;
    parts_.push_back({std::move(run), piece.start});
  }
  pieces_.clear();
}

Layout Join::of_pieces() {
  const std::int64_t length = pieces_.front().length;
  Layout run{.shape = Shape::kRun, .kind = kind_, .is_mixed = is_mixed_};
  run.size = length;
  run.elements = elements_ / static_cast<std::int64_t>(pieces_.size());
  const auto is_as_long = [&](const ByteRun& piece) { return piece.length == length; };
  if (std::ranges::all_of(pieces_, is_as_long)) {
    std::vector<std::int64_t> offsets;
    offsets.reserve(pieces_.size());
    for (const ByteRun& piece : pieces_) offsets.push_back(piece.offset);
    return placed(std::move(run), std::move(offsets));
  }
  Layout made{.shape = Shape::kPieces, .kind = kind_, .is_mixed = is_mixed_};
  pieces_.shrink_to_fit();
  made.pieces = std::make_shared<const std::vector<ByteRun>>(std::move(pieces_));
  return made;
}

Layout Join::of_parts() {
  const Layout& first = parts_.front().layout;
  const auto is_as_first = [&](const Part& part) {
    return have_equal_shape(part.layout, first, by_kind_);
  };
  if (std::ranges::all_of(parts_, is_as_first)) {
    std::vector<std::int64_t> offsets;
    offsets.reserve(parts_.size());
    for (const Part& part : parts_) offsets.push_back(part.layout.offset);
    return placed(first, std::move(offsets));
  }
  Layout made{.shape = Shape::kSequence, .kind = kind_, .is_mixed = is_mixed_};
  made.parts = std::make_shared<const std::vector<Part>>(std::move(parts_));
  return made;
}

Layout Join::take() {
  if (is_empty_) return {};
  Layout made = parts_.empty() ? of_pieces() : of_parts();
  made.size = size_;
  made.elements = elements_;
  return made;
}

}  // namespace hocket::mpi
