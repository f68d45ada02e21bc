// Reusable memory for the duration of a task. The system provides new memory page by page, which
// takes longer than the work on it.
#pragma once

#include <cstddef>
#include <utility>

namespace hocket::algorithm {

// A resource: uninitialized bytes. It can be moved. Each thread caches released memory, up to a few
// ten MiB. A task may begin in one thread and end in another.
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
