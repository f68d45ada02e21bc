// Files that are written through memory: what is in them survives the process, however that ends.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <mutex>
#include <string>

namespace hocket::observe {

std::int64_t clock_ns(clockid_t clock) noexcept;

// A resource: a file of a header and of chunks, which are mapped as they are wanted; not by
// children. Any thread. When the disk is full, it says so once in the log, and counts what is
// dropped.
class MappedFile {
 public:
  static constexpr std::size_t kHeaderBytes = 4096;
  static constexpr std::size_t kChunks = 256;
  struct Purpose {
    const char* setting;  // which asks for it, as errors name it
    const char* doing;    // what is no more done with calls: "traced"
  };

  // A new file NAME in `directory`, which it makes if need be; one that is there may still be
  // mapped by somebody, and stays theirs. Throws SystemError. A chunk is of whole pages.
  MappedFile(const std::string& directory,
             const std::string& name,
             const Purpose& purpose,
             std::size_t chunk_bytes);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  void* header() const noexcept { return header_; }
  // Where in the header it counts what is dropped.
  void count_dropped_in(std::uint64_t& dropped) noexcept { dropped_ = &dropped; }
  // Null, and counted as dropped, where there is no room. `index`: below kChunks.
  std::byte* chunk(std::size_t index) noexcept {
    std::byte* const found = chunks_[index].load(std::memory_order_acquire);
    return found != nullptr ? found : make_chunk(index);
  }
  void drop(const char* why) noexcept;
  // At the end: gives back what is behind the first `used` bytes of the chunks. Not so in a process
  // that was forked meanwhile, which leaves the header, too.
  void cut(std::size_t used) noexcept;

 private:
  void* map(std::size_t offset, std::size_t bytes) noexcept;
  std::byte* make_chunk(std::size_t index) noexcept;

  const Purpose purpose_;
  const std::size_t chunk_bytes_;
  const int pid_;
  int fd_ = -1;
  void* header_ = nullptr;
  std::uint64_t* dropped_ = nullptr;
  std::atomic<bool> full_{false};
  std::mutex mutex_;  // of who makes a chunk
  std::array<std::atomic<std::byte*>, kChunks> chunks_{};
};

}  // namespace hocket::observe
