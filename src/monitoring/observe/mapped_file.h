// Files that are written through memory: their content survives the process, even if it is killed.
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

// A resource: a file of a header and chunks, which are mapped on demand. Any thread may use it, but
// no forked child. When the disk is full, it logs this once, and counts dropped calls.
class MappedFile {
 public:
  static constexpr std::size_t kHeaderBytes = 4096;
  static constexpr std::size_t kChunks = 256;
  struct Purpose {
    const char* setting;  // the environment variable that asks for the file, for errors
    const char* doing;    // past participle for messages about dropped calls: "traced"
  };

  // Makes a new file NAME in `directory`, which it makes if needed. It unlinks an existing file,
  // because another process may still have that mapped. `chunk_bytes` is a multiple of the page
  // size. Throws SystemError.
  MappedFile(const std::string& directory,
             const std::string& name,
             const Purpose& purpose,
             std::size_t chunk_bytes);
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  void* header() const noexcept { return header_; }
  // Sets the place in the header where dropped calls are counted.
  void count_dropped_in(std::uint64_t& dropped) noexcept { dropped_ = &dropped; }
  // Returns a chunk; `index` is below kChunks. If there is no room, counts a drop and returns null.
  std::byte* chunk(std::size_t index) noexcept {
    std::byte* const found = chunks_[index].load(std::memory_order_acquire);
    return found != nullptr ? found : make_chunk(index);
  }
  void drop(const char* why) noexcept;
  // Truncates the file to the header and the first `used` bytes of the chunks. Call it last. In a
  // forked process it does nothing.
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
  std::mutex mutex_;  // held while a chunk is made
  std::array<std::atomic<std::byte*>, kChunks> chunks_{};
};

}  // namespace hocket::observe
