// Helpers for collectives in levels.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "engine/call.h"
#include "engines/algorithm/host_map.h"
#include "engines/algorithm/ranges.h"

namespace hocket::algorithm {

// A list of adjacent parts, in bytes. It cannot be copied, because its views point to its memory. A
// resource.
class PartList {
 public:
  explicit PartList(std::vector<std::size_t> bytes) : bytes_(std::move(bytes)) {
    for (const std::size_t each : bytes_) {
      offsets_.push_back(total_);
      total_ += each;
    }
  }
  PartList(const PartList&) = delete;
  PartList& operator=(const PartList&) = delete;

  engine::PartsView view() const noexcept { return {bytes_.data(), offsets_.data()}; }
  std::size_t bytes(int i) const noexcept { return bytes_[static_cast<std::size_t>(i)]; }
  std::size_t offset(int i) const noexcept { return offsets_[static_cast<std::size_t>(i)]; }
  std::size_t total() const noexcept { return total_; }

 private:
  std::vector<std::size_t> bytes_;
  std::vector<std::size_t> offsets_;
  std::size_t total_ = 0;
};

// Divides `count` elements equally among the first `lanes` of n ranks. Returns the bytes of each
// rank.
inline std::vector<std::size_t> lane_bytes(std::size_t count,
                                           std::size_t element,
                                           int lanes,
                                           int n) {
  std::vector<std::size_t> bytes(static_cast<std::size_t>(n));
  for (int i = 0; i < lanes; ++i) {
    bytes[static_cast<std::size_t>(i)] = even_part(count, lanes, i).length * element;
  }
  return bytes;
}

// Returns the number of elements in each rank's part: equal parts, or for v-forms the parts in
// `listed`.
inline RankParts elements_of_ranks(const engine::Call& call,
                                   const engine::PartsView& listed,
                                   int n) {
  const engine::Signature& s = call.signature;
  if (!is_listed(s.kind)) return RankParts(s.count);
  std::vector<std::size_t> elements(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < elements.size(); ++i)
    elements[i] = listed.bytes[i] / size_of(s.dtype);
  return RankParts(std::move(elements));
}

}  // namespace hocket::algorithm
