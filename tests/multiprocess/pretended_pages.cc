// A kernel with larger pages than this machine's, as far as a library can tell. sysconf reports
// them, mappings begin at such pages, and advice applies to whole ones alone. Replaces libc's
// functions for the whole program; PRETENDED_PAGE is the size in KiB.
#include "pretended_pages.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace {

std::size_t real_page() {
  static const auto bytes = static_cast<std::size_t>(getpagesize());
  return bytes;
}

std::size_t page() {
  static const std::size_t bytes = [] {
    const char* text = getenv("PRETENDED_PAGE");
    return text == nullptr ? real_page() : static_cast<std::size_t>(atoi(text)) << 10;
  }();
  return bytes;
}

std::size_t round_up(std::size_t bytes) { return (bytes + page() - 1) / page() * page(); }

void* real_mmap(void* at, std::size_t bytes, int protection, int flags, int fd, off_t offset) {
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, bytes, protection, flags, fd, offset));
}

}  // namespace

namespace hocket::multiprocess {

std::size_t pretended_page() { return page(); }

void* next_function(const char* name) { return dlsym(RTLD_NEXT, name); }

}  // namespace hocket::multiprocess

extern "C" {

long sysconf(int name) noexcept {
  if (name == _SC_PAGESIZE) return static_cast<long>(page());
  using Function = long (*)(int);
  static const auto real =
      reinterpret_cast<Function>(hocket::multiprocess::next_function("sysconf"));
  return real(name);
}

void* mmap(void* at, std::size_t bytes, int protection, int flags, int fd, off_t offset) noexcept {
  if (at != nullptr || page() == real_page()) {
    return real_mmap(at, bytes, protection, flags, fd, offset);
  }
  // Memory between the ends of the reservation and of the mapping stays reserved.
  void* room = real_mmap(nullptr,
                         round_up(bytes) + page(),
                         PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                         -1,
                         0);
  if (room == MAP_FAILED) return room;
  auto* first = reinterpret_cast<void*>(round_up(reinterpret_cast<std::size_t>(room)));
  return real_mmap(first, bytes, protection, flags | MAP_FIXED, fd, offset);
}

int madvise(void* at, std::size_t bytes, int advice) noexcept {
  if (reinterpret_cast<std::uintptr_t>(at) % page() != 0) {
    errno = EINVAL;
    return -1;
  }
  // All of a page of which a part is named.
  return static_cast<int>(syscall(SYS_madvise, at, round_up(bytes), advice));
}

}  // extern "C"
