// A large, sparse memory that the processes of a job on one host share.
//
// It is a sealed memfd: it has no name, and its size is fixed. It disappears with the last process
// that holds it, however this process ends. Only touched pages take memory. The size of /dev/shm
// does not matter.
#pragma once

#include <cstddef>

#include "foundation/os/fd.h"

namespace hocket::os {

// A resource: the mapping, and the memfd if there is one. It can be moved. Any thread may use it. A
// forked child does not inherit the mapping and must not access it.
class Segment {
 public:
  // Makes a shared segment of `bytes` zeros. Throws SystemError.
  static Segment create(std::size_t bytes);
  // Maps a segment that another process has made. Throws SystemError, or RendezvousError if `fd` is
  // not a sealed memfd of exactly `bytes` bytes.
  static Segment map(Fd fd, std::size_t bytes);
  // Makes memory that only this process can access, for ranks that are threads.
  static Segment create_private(std::size_t bytes);
  // Makes memory for ranks that are threads, which `hocket top` can see from another process. It is
  // a memfd as in `create`, but with another name. If the kernel refuses a memfd, it is private
  // memory.
  static Segment create_for_threads(std::size_t bytes);

  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&&) = delete;
  ~Segment();

  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  const Fd& fd() const noexcept { return fd_; }

  // Clears [offset, offset + bytes): it reads as zero afterwards. Returns whole pages to the system
  // if possible.
  void discard(std::size_t offset, std::size_t bytes) const noexcept;

 private:
  Segment(Fd fd, std::byte* data, std::size_t size) noexcept;
  static Segment create(const char* name, std::size_t bytes);
  Fd fd_;
  std::byte* data_;
  std::size_t size_;
};

// Returns the size of the largest segment that this process's limits (address space, file size)
// allow; at most `wanted`.
std::size_t allowed_segment_bytes(std::size_t wanted);
// Returns `wanted`, halved until a segment of this size fits into the address space. The stripes of
// hundreds of ranks do not fit if each is as large as the machine's memory.
std::size_t segment_bytes_with_room(std::size_t wanted);
// Returns the kernel's page size: 4, 16 or 64 KiB.
std::size_t page_bytes() noexcept;
// Rounds `bytes` up to whole pages.
std::size_t round_to_pages(std::size_t bytes) noexcept;
// Returns the machine's physical memory in bytes.
std::size_t memory_bytes() noexcept;

// Detects forked children by a page that the kernel clears in a child. A resource. `forked` costs
// one load.
class ForkGuard {
 public:
  ForkGuard();
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;
  ~ForkGuard();
  // Returns true in a process that was forked after the construction of this object.
  bool forked() const noexcept { return *word_ == 0; }

 private:
  volatile unsigned long* word_;
};

}  // namespace hocket::os
