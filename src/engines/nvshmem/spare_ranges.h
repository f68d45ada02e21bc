// Memory that a heap has and nobody uses.
#pragma once

#include <cstddef>
#include <map>

namespace hocket::nvshmem {

// What was given back to a heap, which keeps it for later allocations. Ranges that are added or
// taken may overlap what is there in any way. A value.
class SpareRanges {
 public:
  void add(std::byte* address, std::size_t bytes);
  void take(std::byte* address, std::size_t bytes);
  std::size_t largest() const noexcept;

 private:
  using Ends = std::map<std::byte*, std::byte*>;  // by where a range begins
  // The first range that ends at `address` or behind it.
  Ends::iterator first_behind(std::byte* address);

  Ends ends_;  // no two touch each other
};

}  // namespace hocket::nvshmem
