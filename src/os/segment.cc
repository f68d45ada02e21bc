#include "os/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "hocket/error.h"

namespace hocket::os {
namespace {

constexpr int kSeals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW;

std::byte* map_pages(std::size_t bytes, int flags, int fd) {
  void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, fd, 0);
  if (at == MAP_FAILED) {
    throw SystemError("cannot map " + std::to_string(bytes >> 20) +
                          " MiB of address space for the job's shared memory (raise `ulimit -v`, "
                          "or set HOCKET_SEGMENT_GIB to less)",
                      errno);
  }
  madvise(at, bytes, MADV_DONTFORK);
  madvise(at, bytes, MADV_DONTDUMP);
  return static_cast<std::byte*>(at);
}

}  // namespace

Segment::Segment(Fd fd, std::byte* data, std::size_t size) noexcept
    : fd_(std::move(fd)), data_(data), size_(size) {}

Segment::Segment(Segment&& other) noexcept
    : fd_(std::move(other.fd_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

Segment::~Segment() {
  if (data_ != nullptr) munmap(data_, size_);
}

Segment Segment::create(std::size_t bytes) {
  Fd fd(memfd_create("hocket", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) throw SystemError("memfd_create", errno);
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    throw SystemError("cannot size the job's shared memory (see `ulimit -f`)", errno);
  }
  if (fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) {
    throw SystemError("cannot seal the job's shared memory", errno);
  }
  std::byte* data = map_pages(bytes, MAP_SHARED, fd.get());
  return Segment(std::move(fd), data, bytes);
}

Segment Segment::map(Fd fd, std::size_t bytes) {
  struct stat status;
  if (fstat(fd.get(), &status) != 0) throw SystemError("fstat of the job's shared memory", errno);
  const int seals = fcntl(fd.get(), F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals ||
      static_cast<std::size_t>(status.st_size) != bytes) {
    throw RendezvousError("the shared memory handed over is not a sealed memfd of the job's size");
  }
  std::byte* data = map_pages(bytes, MAP_SHARED, fd.get());
  return Segment(std::move(fd), data, bytes);
}

Segment Segment::create_private(std::size_t bytes) {
  return Segment(Fd(), map_pages(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1), bytes);
}

void Segment::discard(std::size_t offset, std::size_t bytes) const noexcept {
  // A shared mapping's pages belong to the file; MADV_REMOVE punches them out of it.
  madvise(data_ + offset, bytes, fd_ ? MADV_REMOVE : MADV_DONTNEED);
}

std::size_t allowed_segment_bytes(std::size_t wanted) {
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    wanted = std::min(wanted, static_cast<std::size_t>(limit.rlim_cur / 4));
  }
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    wanted = std::min(wanted, static_cast<std::size_t>(limit.rlim_cur));
  }
  return wanted;
}

std::size_t page_bytes() noexcept {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

std::size_t memory_bytes() noexcept {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * page_bytes();
}

ForkGuard::ForkGuard() {
  void* page =
      mmap(nullptr, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw SystemError("mmap of a page", errno);
  madvise(page, page_bytes(), MADV_WIPEONFORK);
  word_ = static_cast<unsigned long*>(page);
  *word_ = 1;
}

ForkGuard::~ForkGuard() { munmap(const_cast<unsigned long*>(word_), page_bytes()); }

}  // namespace hocket::os
