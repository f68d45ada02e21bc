#include "engines/nvshmem/spare_ranges.h"

#include <algorithm>
#include <iterator>

namespace hocket::nvshmem {

SpareRanges::Ends::iterator SpareRanges::first_behind(std::byte* address) {
  const auto after = ends_.upper_bound(address);
  if (after == ends_.begin()) return after;
  const auto before = std::prev(after);
  return before->second >= address ? before : after;
}

// Merges the range with all ranges that it overlaps or touches.
void SpareRanges::add(std::byte* address, std::size_t bytes) {
  if (bytes == 0) return;
  std::byte* end = address + bytes;
  auto at = first_behind(address);
  while (at != ends_.end() && at->first <= end) {
    address = std::min(address, at->first);
    end = std::max(end, at->second);
    at = ends_.erase(at);
  }
  ends_[address] = end;
}

// Removes a range. The heap may place an allocation anywhere, so the range may cover several free
// ranges, and memory between them.
void SpareRanges::take(std::byte* address, std::size_t bytes) {
  if (bytes == 0) return;
  std::byte* const end = address + bytes;
  auto at = first_behind(address);
  while (at != ends_.end() && at->first < end) {
    const auto [first, last] = *at;
    at = ends_.erase(at);
    if (first < address) ends_[first] = std::min(last, address);
    if (last > end) ends_[end] = last;
  }
}

std::size_t SpareRanges::largest() const noexcept {
  std::size_t most = 0;
  for (const auto& [begin, end] : ends_)
    most = std::max(most, static_cast<std::size_t>(end - begin));
  return most;
}

}  // namespace hocket::nvshmem
