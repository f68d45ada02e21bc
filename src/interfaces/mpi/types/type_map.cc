#include "interfaces/mpi/types/type_map.h"

#include <algorithm>
#include <utility>

namespace hocket::mpi {
namespace {

Refusal too_large() {
  return {ErrorClass::kValueTooLarge,
          "the type's size or a place in it does not fit into 64 bits: use smaller counts or "
          "displacements"};
}

// Widens the bounds for copies at displacements from `lowest` to `highest`. Returns false if the
// bounds overflow.
bool spread(std::optional<Bounds>& bounds, std::int64_t lowest, std::int64_t highest) {
  if (!bounds) return true;
  return !__builtin_add_overflow(bounds->lower, lowest, &bounds->lower) &&
         !__builtin_add_overflow(bounds->upper, highest, &bounds->upper);
}

void unite(std::optional<Bounds>& bounds, const std::optional<Bounds>& other) {
  if (!other) return;
  if (!bounds) {
    bounds = other;
    return;
  }
  bounds->lower = std::min(bounds->lower, other->lower);
  bounds->upper = std::max(bounds->upper, other->upper);
}

// Returns whether the extent fits into 64 bits, also after it is rounded up to `alignment`.
bool fits(const std::optional<Bounds>& bounds, std::int64_t alignment) {
  std::int64_t end = 0;
  std::int64_t extent = 0;
  return !bounds || (!__builtin_add_overflow(bounds->upper, alignment, &end) &&
                     !__builtin_sub_overflow(end, bounds->lower, &extent));
}

}  // namespace

TypeMap TypeMap::of(Kind kind) {
  const KindFacts& facts = facts_of(kind);
  TypeMap made;
  if (facts.is_pair()) {
    const Layout second = run_of(facts.second, 1);
    Join bytes(false), by_kind(true);
    for (Join* const join : {&bytes, &by_kind}) {
      join->add(run_of(facts.first, 1));
      join->add(mpi::moved(second, second_offset_of(kind)));
    }
    made.bytes_ = bytes.take();
    made.is_mixed_ = facts.first != facts.second;
    if (made.is_mixed_) made.by_kind_ = std::make_shared<const Layout>(by_kind.take());
    made.data_ = Bounds{0, second_offset_of(kind) + second.size};
  } else {
    made.bytes_ = run_of(kind, 1);
    made.data_ = Bounds{0, made.bytes_.size};
  }
  made.kind_ = kind;
  made.alignment_ = alignment_of(kind);
  return made;
}

Bounds TypeMap::bounds() const noexcept {
  if (marked_) return *marked_;
  if (!data_) return {};
  const std::int64_t extent = data_->upper - data_->lower;
  return {data_->lower, data_->lower + (extent + alignment_ - 1) / alignment_ * alignment_};
}

Result<TypeMap> TypeMap::bounded(std::int64_t lb, std::int64_t extent) const {
  const auto upper = checked_add(lb, extent);
  if (!upper) return too_large();
  TypeMap made = *this;
  made.marked_ = Bounds{lb, *upper};
  return made;
}

Result<TypeMap> TypeMap::repeated(std::int64_t count, std::int64_t stride) const {
  if (count == 0) return TypeMap();
  const auto last = checked_multiply(count - 1, stride);
  const auto packed = checked_multiply(count, size());
  if (!last || !packed) return too_large();
  TypeMap made = *this;
  const std::int64_t lowest = std::min<std::int64_t>(*last, 0);
  const std::int64_t highest = std::max<std::int64_t>(*last, 0);
  if (!spread(made.data_, lowest, highest) || !spread(made.marked_, lowest, highest) ||
      !fits(made.data_, alignment_) || !fits(made.marked_, 0)) {
    return too_large();
  }
  made.bytes_ = mpi::repeated(bytes_, count, stride);
  if (is_mixed_) {
    made.by_kind_ = std::make_shared<const Layout>(mpi::repeated(*by_kind_, count, stride));
  }
  return made;
}

Result<TypeMap> TypeMap::moved(std::int64_t offset) const {
  TypeMap made = *this;
  if (!spread(made.data_, offset, offset) || !spread(made.marked_, offset, offset) ||
      !fits(made.data_, alignment_)) {
    return too_large();
  }
  made.bytes_ = mpi::moved(bytes_, offset);
  if (is_mixed_) made.by_kind_ = std::make_shared<const Layout>(mpi::moved(*by_kind_, offset));
  return made;
}

std::optional<Refusal> TypeMapJoin::add(const TypeMap& map,
                                        std::int64_t count,
                                        std::int64_t offset) {
  if (count == 0) return {};
  const std::int64_t extent = map.extent();
  const auto last = checked_multiply(count - 1, extent);
  const auto packed = checked_multiply(count, map.size());
  const auto size = packed ? checked_add(size_, *packed) : std::nullopt;
  if (!last || !size) return too_large();
  const auto lowest = checked_add(offset, std::min<std::int64_t>(*last, 0));
  const auto highest = checked_add(offset, std::max<std::int64_t>(*last, 0));
  std::optional<Bounds> data = map.data_, marked = map.marked_;
  if (!lowest || !highest || !spread(data, *lowest, *highest) ||
      !spread(marked, *lowest, *highest)) {
    return too_large();
  }
  if (data) made_.kind_ = !made_.data_ || made_.kind_ == map.kind_ ? map.kind_ : std::nullopt;
  unite(made_.data_, data);
  unite(made_.marked_, marked);
  made_.alignment_ = std::max(made_.alignment_, map.alignment_);
  if (!fits(made_.data_, made_.alignment_) || !fits(made_.marked_, 0)) return too_large();
  size_ = *size;
  add_layouts(map, count, offset);
  return {};
}

void TypeMapJoin::add_layouts(const TypeMap& map, std::int64_t count, std::int64_t offset) {
  const Layout& bytes = map.bytes();
  const std::int64_t extent = map.extent();
  const bool is_block =
      bytes.shape == Layout::Shape::kRun && !map.is_mixed_ && (count == 1 || extent == bytes.size);
  if (is_block) {
    // A fast path for types of many blocks of numbers.
    bytes_.add_run(bytes.kind, offset + bytes.offset, count * bytes.elements);
    by_kind_.add_run(bytes.kind, offset + bytes.offset, count * bytes.elements);
    return;
  }
  bytes_.add(mpi::moved(mpi::repeated(bytes, count, extent), offset));
  by_kind_.add(mpi::moved(mpi::repeated(map.elements(), count, extent), offset));
}

Result<TypeMap> TypeMapJoin::take() {
  Layout by_kind = by_kind_.take();
  made_.is_mixed_ = by_kind.is_mixed;
  if (made_.is_mixed_) {
    made_.by_kind_ = std::make_shared<const Layout>(std::move(by_kind));
    made_.bytes_ = bytes_.take();
  } else {
    made_.bytes_ = std::move(by_kind);
  }
  return std::move(made_);
}

}  // namespace hocket::mpi
