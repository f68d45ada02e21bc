// Finds the processes that hold a job's shared memory, and maps this memory read-only.
//
// The memory has no name, but each process that holds it has a descriptor of it. The kernel lets
// processes of the same user open this descriptor again. So any job can be found and viewed,
// however it was started, and also while its processes are stopped.
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
  pid_t pid = 0;                // its pid in the caller's pid namespace
  pid_t own_pid = 0;            // its pid in its own pid namespace
  std::uint64_t own_space = 0;  // that namespace, as from process_space; 0: unknown
  std::uint64_t memory = 0;     // inode, equal for all holders of a segment
  std::string path;             // the path that opens the segment
  bool is_of_threads = false;   // the ranks are threads of the process
};
// Returns all holders among the processes of this user.
std::vector<SegmentHolder> segment_holders();
// Returns the segments that one process holds: first that of its job with other processes, then
// those of ranks that are threads, oldest first.
std::vector<SegmentHolder> segment_holders(pid_t pid);

// Returns the number that SegmentHolder::memory has for a segment of this process. 0 if no other
// process can see the segment.
std::uint64_t number_of(const Segment& segment) noexcept;

// A resource: another process's segment, mapped read-only. It can be moved.
class SegmentView {
 public:
  // Maps the segment at SegmentHolder::path. Throws SystemError.
  explicit SegmentView(const std::string& path);
  SegmentView(SegmentView&& other) noexcept
      : fd_(std::move(other.fd_)),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  SegmentView& operator=(SegmentView&&) = delete;
  ~SegmentView();
  std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }
  // Returns how much memory the segment takes, in bytes. 0 if it is unknown.
  std::size_t touched_bytes() const noexcept;

 private:
  Fd fd_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// Returns the first 200 bytes of a process's command line. Empty if it is unknown.
std::string command_of(pid_t pid);
// Returns the value that an environment variable of a process had when the process started. Empty
// if it was unset.
std::string variable_of(pid_t pid, std::string_view name);

}  // namespace hocket::os
