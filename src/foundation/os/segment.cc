#include "foundation/os/segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "foundation/os/memfd.h"
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

// Returns whether this process's address space has a free range of `bytes`.
bool has_room(std::size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return false;
  munmap(at, bytes);
  return true;
}

// Returns how much address space this process has mapped: the first word of /proc/self/statm.
std::size_t mapped_bytes() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * page_bytes();
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

Segment Segment::create(std::size_t bytes) { return create("hocket", bytes); }

Segment Segment::create_for_threads(std::size_t bytes) {
  try {
    return create("hocket-threads", bytes);
  } catch (const SystemError&) {
    return create_private(bytes);
  }
}

Segment Segment::create(const char* name, std::size_t bytes) {
  Fd fd = make_memfd(name);
  if (!fd) {
    const bool lacks_descriptor = errno == EMFILE || errno == ENFILE;
    throw SystemError(
        lacks_descriptor ? "cannot make the job's shared memory"
                         : "the kernel refuses memfd_create, which the job's shared memory is made "
                           "by; allow it in the container's seccomp profile",
        errno);
  }
  // If the size exceeds this limit, the kernel kills the process (SIGXFSZ) instead of returning an
  // error.
  rlimit limit{};
  const bool is_allowed = getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
                          bytes <= limit.rlim_cur;
  if (!is_allowed) errno = EFBIG;
  if (!is_allowed || ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    throw SystemError("cannot size the job's shared memory (HOCKET_SEGMENT_GIB makes it less)",
                      errno);
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
  if (fd_) {
    // Punches a hole into the file. This works for any range, also if a process has locked some
    // pages.
    const int result = fallocate(fd_.get(),
                                 FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                 static_cast<off_t>(offset),
                                 static_cast<off_t>(bytes));
    if (result != 0) std::memset(data_ + offset, 0, bytes);
    return;
  }
  // MADV_DONTNEED frees every page that the range touches. So it gets whole pages only, and memset
  // clears the rest.
  const std::size_t page = page_bytes();
  const std::size_t first = std::min((offset + page - 1) / page * page, offset + bytes);
  const std::size_t last = std::max((offset + bytes) / page * page, first);
  std::memset(data_ + offset, 0, first - offset);
  if (last > first && madvise(data_ + first, last - first, MADV_DONTNEED) != 0) {
    std::memset(data_ + first, 0, last - first);
  }
  std::memset(data_ + last, 0, offset + bytes - last);
}

std::size_t allowed_segment_bytes(std::size_t wanted) {
  rlimit limit;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    // The rest of the address space is for later mappings of threads and libraries. A malloc arena
    // alone needs 128 MiB for a moment.
    const std::size_t most = limit.rlim_cur, used = mapped_bytes();
    wanted = std::min({wanted, most / 4, most > used ? (most - used) / 4 * 3 : 0});
  }
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    wanted = std::min(wanted, static_cast<std::size_t>(limit.rlim_cur));
  }
  return wanted;
}

std::size_t segment_bytes_with_room(std::size_t wanted) {
  // Twice the size must fit, because other ranks have other mappings, and so smaller free ranges.
  while (wanted > page_bytes() && !has_room(2 * wanted)) wanted = round_to_pages(wanted / 2);
  return wanted;
}

std::size_t page_bytes() noexcept {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

std::size_t round_to_pages(std::size_t bytes) noexcept {
  return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

std::size_t memory_bytes() noexcept {
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * page_bytes();
}

ForkGuard::ForkGuard() {
  void* page =
      mmap(nullptr, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw SystemError("mmap of a page", errno);
  if (madvise(page, page_bytes(), MADV_WIPEONFORK) != 0) {
    const int error = errno;
    munmap(page, page_bytes());
    throw SystemError(
        "the kernel refuses madvise(MADV_WIPEONFORK), by which forked children are found; allow it "
        "in the container's seccomp profile",
        error);
  }
  word_ = static_cast<unsigned long*>(page);
  *word_ = 1;
}

ForkGuard::~ForkGuard() { munmap(const_cast<unsigned long*>(word_), page_bytes()); }

}  // namespace hocket::os
