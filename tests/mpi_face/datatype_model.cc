#include "tests/mpi_face/datatype_model.h"

#include <algorithm>
#include <cstring>

namespace hocket::mpi::model {

TypeMap TypeMap::of(Kind kind) {
  const KindFacts& facts = facts_of(kind);
  TypeMap made;
  made.entries.push_back({facts.first, 0});
  if (facts.is_pair()) made.entries.push_back({facts.second, second_offset_of(kind)});
  made.alignment = alignment_of(kind);
  return made;
}

void TypeMap::append(const TypeMap& old, std::int64_t count, std::int64_t displacement) {
  const std::int64_t extent = old.extent();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t at = displacement + i * extent;
    for (const Entry& entry : old.entries) entries.push_back({entry.kind, entry.displacement + at});
    for (const std::int64_t mark : old.lower_marks) lower_marks.push_back(mark + at);
    for (const std::int64_t mark : old.upper_marks) upper_marks.push_back(mark + at);
    alignment = std::max(alignment, old.alignment);
  }
}

void TypeMap::resize(std::int64_t lb, std::int64_t extent) {
  lower_marks = {lb};
  upper_marks = {lb + extent};
}

std::int64_t TypeMap::size() const {
  std::int64_t bytes = 0;
  for (const Entry& entry : entries) bytes += size_of(entry.kind);
  return bytes;
}

std::int64_t TypeMap::true_lb() const {
  if (entries.empty()) return 0;
  return std::ranges::min(entries, {}, &Entry::displacement).displacement;
}

std::int64_t TypeMap::true_ub() const {
  std::int64_t end = entries.empty() ? 0 : INT64_MIN;
  for (const Entry& entry : entries) end = std::max(end, entry.displacement + size_of(entry.kind));
  return end;
}

std::int64_t TypeMap::lb() const {
  return lower_marks.empty() ? true_lb() : std::ranges::min(lower_marks);
}

std::int64_t TypeMap::extent() const {
  if (!upper_marks.empty()) return std::ranges::max(upper_marks) - lb();
  std::int64_t extent = true_ub() - lb();
  while (extent % alignment != 0) ++extent;
  return extent;
}

bool TypeMap::overlaps() const {
  std::vector<Entry> sorted = entries;
  std::ranges::sort(sorted, {}, &Entry::displacement);
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    const Entry& before = sorted[i - 1];
    if (before.displacement + size_of(before.kind) > sorted[i].displacement) return true;
  }
  return false;
}

std::vector<std::byte> TypeMap::pack(const std::byte* user, std::int64_t count) const {
  std::vector<std::byte> packed;
  for (std::int64_t i = 0; i < count; ++i) {
    for (const Entry& entry : entries) {
      const std::byte* const from = user + i * extent() + entry.displacement;
      packed.insert(packed.end(), from, from + size_of(entry.kind));
    }
  }
  return packed;
}

void TypeMap::unpack(const std::vector<std::byte>& packed,
                     std::int64_t count,
                     std::byte* user) const {
  const std::byte* from = packed.data();
  for (std::int64_t i = 0; i < count; ++i) {
    for (const Entry& entry : entries) {
      const auto bytes = static_cast<std::size_t>(size_of(entry.kind));
      std::memcpy(user + i * extent() + entry.displacement, from, bytes);
      from += bytes;
    }
  }
}

std::optional<std::int64_t> TypeMap::elements_in(std::int64_t bytes) const {
  if (entries.empty()) return bytes == 0 ? std::optional<std::int64_t>(0) : std::nullopt;
  std::int64_t elements = 0;
  for (std::size_t i = 0; bytes > 0; i = (i + 1) % entries.size()) {
    bytes -= size_of(entries[i].kind);
    if (bytes >= 0) ++elements;
  }
  if (bytes < 0) return {};
  return elements;
}

}  // namespace hocket::mpi::model
