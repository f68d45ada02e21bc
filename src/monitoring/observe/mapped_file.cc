#include "monitoring/observe/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "foundation/base/log.h"
#include "hocket/error.h"

namespace hocket::observe {

std::int64_t clock_ns(clockid_t clock) noexcept {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

MappedFile::MappedFile(const std::string& directory,
                       const std::string& name,
                       const Purpose& purpose,
                       std::size_t chunk_bytes)
    : purpose_(purpose), chunk_bytes_(chunk_bytes), pid_(getpid()) {
  const auto path = std::filesystem::path(directory) / name;
  const auto fail = [&](int error) {
    if (fd_ >= 0) close(fd_);
    throw SystemError(std::string(purpose.setting) + ": cannot write " + path.string(), error);
  };
  std::error_code made;
  std::filesystem::create_directories(directory, made);
  if (made) fail(made.value());
  if (unlink(path.c_str()) != 0 && errno != ENOENT) fail(errno);
  fd_ = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd_ < 0) fail(errno);
  header_ = map(0, kHeaderBytes);
  if (header_ == nullptr) fail(errno);
}

MappedFile::~MappedFile() {
  close(fd_);
  if (getpid() != pid_) return;  // the mappings do not exist in a forked child
  for (auto& chunk : chunks_) {
    if (chunk.load() != nullptr) munmap(chunk.load(), chunk_bytes_);
  }
  munmap(header_, kHeaderBytes);
}

void MappedFile::cut(std::size_t used) noexcept {
  if (getpid() != pid_) return;
  if (ftruncate(fd_, static_cast<off_t>(kHeaderBytes + used)) != 0) {
    base::log(base::LogLevel::kDebug,
              std::string(purpose_.setting) + ": a file could not be cut to its size");
  }
}

void MappedFile::drop(const char* why) noexcept {
  if (dropped_ != nullptr) std::atomic_ref(*dropped_).fetch_add(1, std::memory_order_relaxed);
  if (full_.exchange(true)) return;
  try {
    base::log(base::LogLevel::kWarning,
              std::string("no more calls are ") + purpose_.doing + ": " + why);
  } catch (...) {  // the drop is still counted
  }
}

// Maps a part of the file for which disk space is reserved. Null with errno set on failure.
void* MappedFile::map(std::size_t offset, std::size_t bytes) noexcept {
  const int error = posix_fallocate(fd_, static_cast<off_t>(offset), static_cast<off_t>(bytes));
  if (error != 0) {
    errno = error;
    return nullptr;
  }
  void* at =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, static_cast<off_t>(offset));
  if (at == MAP_FAILED) return nullptr;
  // MADV_POPULATE_WRITE, of Linux 5.14 and later: makes the pages writable now. Else the first
  // write to each would fault during a call.
  constexpr int kPopulateWrite = 23;
  madvise(at, bytes, kPopulateWrite);
  madvise(at, bytes, MADV_DONTFORK);
  return at;
}

std::byte* MappedFile::make_chunk(std::size_t index) noexcept {
  const std::lock_guard lock(mutex_);
  std::byte* found = chunks_[index].load(std::memory_order_acquire);
  if (found != nullptr) return found;
  if (full_) {
    drop("there is no room");
    return nullptr;
  }
  found = static_cast<std::byte*>(map(kHeaderBytes + index * chunk_bytes_, chunk_bytes_));
  if (found == nullptr) {
    const int error = errno;
    drop(std::strerror(error));
    return nullptr;
  }
  chunks_[index].store(found, std::memory_order_release);
  return found;
}

}  // namespace hocket::observe
