// One large, sparse piece of memory that the processes of a job on one host share.
//
// Backed by a sealed memfd: it has no name, its size is fixed, and nothing is left of it when the
// last process is gone, however it went. Only pages that were touched take memory; /dev/shm's size
// does not matter.
#pragma once

#include <cstddef>

#include "foundation/os/fd.h"

namespace hocket::os {

// A resource: the mapping, and the file descriptor where there is one. Movable; any thread. Not
// inherited by forked children, which must not touch it.
class Segment {
 public:
  // Shared: `bytes` of zeros. Throws SystemError.
  static Segment create(std::size_t bytes);
  // Maps one that another process made. Throws SystemError, or RendezvousError when `fd` is not a
  // sealed memfd of at least `bytes`.
  static Segment map(Fd fd, std::size_t bytes);
  // For ranks that are threads: ordinary memory, which nobody else sees.
  static Segment create_private(std::size_t bytes);
  // The same that can be looked at from outside, as `create` makes it but under another name;
  // private where the kernel refuses that.
  static Segment create_for_threads(std::size_t bytes);

  Segment(Segment&& other) noexcept;
  Segment& operator=(Segment&&) = delete;
  ~Segment();

  std::byte* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  const Fd& fd() const noexcept { return fd_; }

  // Has [offset, offset + bytes) read zero, by giving its whole pages back to the system where that
  // is possible.
  void discard(std::size_t offset, std::size_t bytes) const noexcept;

 private:
  Segment(Fd fd, std::byte* data, std::size_t size) noexcept;
  static Segment create(const char* name, std::size_t bytes);
  Fd fd_;
  std::byte* data_;
  std::size_t size_;
};

// The largest segment that this process's limits (address space, file size) allow, at most
// `wanted`.
std::size_t allowed_segment_bytes(std::size_t wanted);
// `wanted`, or as often half of it as the processor's addresses demand: they do not suffice for
// the stripes of hundreds of ranks if each is as large as the machine's memory.
std::size_t segment_bytes_with_room(std::size_t wanted);
// Of the kernel: 4, 16 or 64 KiB.
std::size_t page_bytes() noexcept;
// The least multiple of it that holds `bytes`.
std::size_t round_to_pages(std::size_t bytes) noexcept;
// Physical memory of this machine, bytes.
std::size_t memory_bytes() noexcept;

// A page that a forked child finds wiped. A resource; check() is one load.
class ForkGuard {
 public:
  ForkGuard();
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;
  ~ForkGuard();
  // True in a process that was forked after this was made.
  bool forked() const noexcept { return *word_ == 0; }

 private:
  volatile unsigned long* word_;
};

}  // namespace hocket::os
