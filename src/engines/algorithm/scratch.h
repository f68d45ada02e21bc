// Reusable memory for the duration of a task. New memory would cost more time than the work on it,
// because the kernel provides new memory page by page.
#pragma once

#include <cstddef>
#include <utility>

namespace hocket::algorithm {

// Uninitialized bytes. It can be moved. Each thread caches released memory, up to 32 MiB. One
// thread may allocate the memory and another may release it, because a task may begin in one thread
// and end in another. A resource.
class Scratch {
 public:
  Scratch() noexcept = default;
  explicit Scratch(std::size_t bytes);
  Scratch(Scratch&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), room_(std::exchange(other.room_, 0)) {}
  Scratch& operator=(Scratch&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(room_, other.room_);
    return *this;
  }
  ~Scratch();

  // Returns the memory. Null if the size is 0.
  std::byte* get() const noexcept { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t room_ = 0;
};

}  // namespace hocket::algorithm
