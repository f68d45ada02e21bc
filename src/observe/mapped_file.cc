#include "observe/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "hocket/error.h"

namespace hocket::observe {

std::int64_t clock_ns(clockid_t clock) noexcept {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

void fail_to_write(const std::string& directory,
                   const std::string& name,
                   const char* variable,
                   int error) {
  const auto path = std::filesystem::path(directory) / name;
  throw SystemError(std::string(variable) + ": cannot write " + path.string(), error);
}

int create_file(const std::string& directory, const std::string& name, const char* variable) {
  const auto path = std::filesystem::path(directory) / name;
  const auto fail = [&](int error) { fail_to_write(directory, name, variable, error); };
  std::error_code made;
  std::filesystem::create_directories(directory, made);
  if (made) fail(made.value());
  if (unlink(path.c_str()) != 0 && errno != ENOENT) fail(errno);
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) fail(errno);
  return fd;
}

void* map_piece(int fd, std::size_t offset, std::size_t bytes) noexcept {
  const int error = posix_fallocate(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  void* at = mmap(nullptr,
                  bytes,
                  PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_POPULATE,
                  fd,
                  static_cast<off_t>(offset));
  if (at == MAP_FAILED) return nullptr;
  madvise(at, bytes, MADV_DONTFORK);
  return at;
}

}  // namespace hocket::observe
