// The processes that hold a job's shared memory, and that memory as one of them holds it.
//
// The memory has no name, but each process that holds it has a descriptor of it, which the kernel
// lets its own user open anew, for reading alone. So a job is found and seen however it was
// started, and whether its processes run or not.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "foundation/os/fd.h"
#include "foundation/os/segment.h"

namespace hocket::os {

// A value.
struct SegmentHolder {
  pid_t pid = 0;           // here
  pid_t own_pid = 0;       // as the process itself knows it, in its container
  std::uint64_t memory = 0;  // equal for those that hold the same
  std::string path;        // by which it is opened
  bool is_of_threads = false;  // the ranks are threads of this process
};
// All of this process's user.
std::vector<SegmentHolder> segment_holders();
// Of one process: that of its own job first, then those of threads, the oldest first.
std::vector<SegmentHolder> segment_holders(pid_t pid);

// SegmentHolder::memory of one that this process has; 0 where nobody else can see it.
std::uint64_t number_of(const Segment& segment) noexcept;

// A resource: such memory, mapped for reading. Movable.
class SegmentView {
 public:
  // Throws SystemError.
  explicit SegmentView(const std::string& path);
  SegmentView(SegmentView&& other) noexcept
      : fd_(std::move(other.fd_)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  SegmentView& operator=(SegmentView&&) = delete;
  ~SegmentView();
  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
  // How much memory it takes, where that can be asked.
  std::size_t touched_bytes() const noexcept;

 private:
  Fd fd_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// The first words of the command that the process runs; empty where it cannot be known.
std::string command_of(pid_t pid);
// A variable that the process was started with; empty where there is none.
std::string variable_of(pid_t pid, std::string_view name);

}  // namespace hocket::os
