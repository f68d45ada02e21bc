// Memory that a heap has and nobody uses.
#pragma once

#include <cstddef>
#include <map>

namespace hocket::nvshmem {

// What was given back to a heap, which keeps it for later allocations. A value.
class SpareRanges {
 public:
  void add(std::byte* address, std::size_t bytes);
  void take(std::byte* address, std::size_t bytes);
  std::size_t largest() const noexcept;

 private:
  std::map<std::byte*, std::size_t> ranges_;  // no two touch each other
};

}  // namespace hocket::nvshmem
