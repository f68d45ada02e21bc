// Files that are written through memory: their content survives the process, however that ends.
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

// A resource: a file of a header and chunks, which are mapped on demand. Forked children do not use
// it. Any thread. When the disk is full, it logs that once, and counts what is dropped.
class MappedFile {
 public:
  static constexpr std::size_t kHeaderBytes = 4096;
  static constexpr std::size_t kChunks = 256;
  struct Purpose {
    const char* setting;  // which asks for it, as errors name it
    const char* doing;    // past participle for messages about dropped calls: "traced"
  };

  // Makes a new file NAME in `directory`, which it makes if needed. An existing file may still be
  // mapped by another process, and is left to it. Throws SystemError. A chunk consists of whole
  // pages.
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
  // Null, and counted as dropped, if there is no room. `index` is below kChunks.
  std::byte* chunk(std::size_t index) noexcept {
    std::byte* const found = chunks_[index].load(std::memory_order_acquire);
    return found != nullptr ? found : make_chunk(index);
  }
  void drop(const char* why) noexcept;
  // Cuts the file behind the first `used` bytes of the chunks, at the end. A forked process does
  // nothing here, not even to the header.
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
