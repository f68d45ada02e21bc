// Memory for the length of a task, which is used again: what comes fresh from the system comes page
// by page, which takes longer than what it is needed for.
#pragma once

#include <cstddef>
#include <utility>

namespace hocket::algorithm {

// A resource: uninitialised bytes. Movable. Each thread keeps some of what it gave back, up to a
// few ten MiB; a task may begin in one thread and end in another.
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

  // Null where no bytes were asked for.
  std::byte* get() const noexcept { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t room_ = 0;
};

}  // namespace hocket::algorithm
