#include "nvshmem/spare_ranges.h"

#include <algorithm>
#include <iterator>

namespace hocket::nvshmem {

void SpareRanges::add(std::byte* address, std::size_t bytes) {
  const auto next = ranges_.upper_bound(address);
  if (next != ranges_.end() && next->first == address + bytes) {
    bytes += next->second;
    ranges_.erase(next);
  }
  const auto after = ranges_.upper_bound(address);
  if (after != ranges_.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second == address) {
      before->second += bytes;
      return;
    }
  }
  ranges_[address] = bytes;
}

void SpareRanges::take(std::byte* address, std::size_t bytes) {
  const auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) return;
  const auto range = std::prev(after);
  const std::byte* end = range->first + range->second;
  if (address + bytes > end) return;
  const auto behind = static_cast<std::size_t>(end - (address + bytes));
  range->second = static_cast<std::size_t>(address - range->first);
  if (range->second == 0) ranges_.erase(range);
  if (behind > 0) ranges_[address + bytes] = behind;
}

std::size_t SpareRanges::largest() const noexcept {
  std::size_t most = 0;
  for (const auto& [address, bytes] : ranges_) most = std::max(most, bytes);
  return most;
}

}  // namespace hocket::nvshmem
