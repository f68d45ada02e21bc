// A large, sparse memory that the processes of a job on one host share.
//
// It is a sealed memfd: it has no name, and its size is fixed. Nothing remains of it after the last
// process has ended, in whatever way. Only touched pages take memory. The size of /dev/shm does not
// matter.
#pragma once

#include <cstddef>

#include "foundation/os/fd.h"

namespace hocket::os {

// A resource: the mapping, and the file descriptor if there is one. It can be moved. Any thread may
// use it. Forked children do not inherit the mapping and must not access it.
class Segment {
 public:
  // Makes a shared segment of `bytes` zeros. Throws SystemError.
  static Segment create(std::size_t bytes);
  // Maps a segment of another process. Throws SystemError, or RendezvousError if `fd` is not a
  // sealed memfd of at least `bytes`.
  static Segment map(Fd fd, std::size_t bytes);
  // Makes private memory, for ranks that are threads.
  static Segment create_private(std::size_t bytes);
  // Makes the same, but visible to other processes as `create` does, with another name. It is
  // private if the kernel refuses that.
  static Segment create_for_threads(std::size_t bytes);

  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&&) = delete;
  ~Segment();

  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  const Fd& fd() const noexcept { return fd_; }

  // Makes [offset, offset + bytes) read as zero. It returns whole pages to the system if possible.
  void discard(std::size_t offset, std::size_t bytes) const noexcept;

 private:
  Segment(Fd fd, std::byte* data, std::size_t size) noexcept;
  static Segment create(const char* name, std::size_t bytes);
  Fd fd_;
  std::byte* data_;
  std::size_t size_;
};

// Returns the largest segment that this process's limits (address space, file size) allow, up to
// `wanted`.
std::size_t allowed_segment_bytes(std::size_t wanted);
// Returns `wanted`, halved until it fits into the processor's address space. The stripes of
// hundreds of ranks do not fit if each is as large as the machine's memory.
std::size_t segment_bytes_with_room(std::size_t wanted);
// Returns the kernel's page size: 4, 16 or 64 KiB.
std::size_t page_bytes() noexcept;
// Rounds up to whole pages.
std::size_t round_to_pages(std::size_t bytes) noexcept;
// Returns the machine's physical memory in bytes.
std::size_t memory_bytes() noexcept;

// A page that is wiped in a forked child. A resource; check() is one load.
class ForkGuard {
 public:
  ForkGuard();
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;
  ~ForkGuard();
  // Returns true in a process that was forked after the construction.
  bool forked() const noexcept { return *word_ == 0; }

 private:
  volatile unsigned long* word_;
};

}  // namespace hocket::os
