// Finds the processes that hold a job's shared memory, and maps that memory.
//
// The memory has no name, but each process that holds it has a descriptor. The kernel lets the same
// user open this again, read-only. So a job can be found and viewed however it was started, and
// whether or not its processes run.
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

// A process that holds a segment. A value.
struct SegmentHolder {
  pid_t pid = 0;               // in this pid namespace
  pid_t own_pid = 0;           // in the process's own pid namespace
  std::uint64_t memory = 0;    // inode: equal for holders of the same segment
  std::string path;            // path that opens the segment
  bool is_of_threads = false;  // the ranks are threads of this process
};
// Returns all holders of this process's user.
std::vector<SegmentHolder> segment_holders();
// Returns the segments of one process: that of its own job first, then those of threads, oldest
// first.
std::vector<SegmentHolder> segment_holders(pid_t pid);

// Returns SegmentHolder::memory of a segment of this process. 0 if no other process can see it.
std::uint64_t number_of(const Segment& segment) noexcept;

// A resource: such memory, mapped read-only. It can be moved.
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
  // Returns how much memory it takes, if that is known.
  std::size_t touched_bytes() const noexcept;

 private:
  Fd fd_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// Returns the first words of the process's command line. Empty if it is unknown.
std::string command_of(pid_t pid);
// Returns an environment variable of the process at its start. Empty if it is unset.
std::string variable_of(pid_t pid, std::string_view name);

}  // namespace hocket::os
