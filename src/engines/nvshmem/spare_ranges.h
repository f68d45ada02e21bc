// The free ranges of a heap.
#pragma once

#include <cstddef>
#include <map>

namespace hocket::nvshmem {

// The memory that was returned to a heap and that the heap keeps for later allocations. A range
// that is added or taken may overlap existing ranges in any way. A value.
class SpareRanges {
 public:
  void add(std::byte* address, std::size_t bytes);
  void take(std::byte* address, std::size_t bytes);
  std::size_t largest() const noexcept;

 private:
  using Ends = std::map<std::byte*, std::byte*>;  // the end of each range, by its begin
  // Returns the first range that ends at or behind `address`.
  Ends::iterator first_behind(std::byte* address);

  Ends ends_;  // ranges do not touch each other
};

}  // namespace hocket::nvshmem
