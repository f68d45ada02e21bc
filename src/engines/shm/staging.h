// How what goes from rank to rank is stored.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/reduce.h"

namespace hocket::engines::shm {

// Results this large leave the caches anyway: write them past.
inline core::Stores stores_for(std::size_t result_bytes) noexcept {
  constexpr std::size_t kStreamFrom = std::size_t{2} << 20;
  return result_bytes >= kStreamFrom ? core::Stores::kStreaming : core::Stores::kCached;
}

// Copies into shared memory that peers are about to read. A value, of one thread at a time.
//
// The peers have read what was there before, so its lines lie in their caches, and an ordinary
// store first fetches each of them, only to overwrite it. Between cores that share a cache that is
// soon done. Between others it takes several times as long as everything else; stores past the
// caches, which fetch nothing, are quick anywhere, but what they wrote is read from main memory
// (docs/performance.md has both). Which it is here, no list of caches tells for sure, least of all
// in a virtual machine that moves from core to core: so now and then an ordinary copy is timed.
class Stager {
 public:
  // From how many bytes on stores past the caches are quicker also where the caches are near: of
  // what its readers copy on, and of an array that they reduce.
  static constexpr std::size_t kCopiedFrom = std::size_t{32} << 10;
  static constexpr std::size_t kReducedFrom = std::size_t{1} << 20;

  // `past`: past the caches however near they are.
  void copy(void* to, const void* from, std::size_t bytes, bool past) noexcept {
    if (bytes < kStreamFrom) return core::copy(to, from, bytes, core::Stores::kCached);
    if (past) return core::copy(to, from, bytes, core::Stores::kStreaming);
    copy_as_is_best(to, from, bytes);
  }

 private:
  static constexpr std::size_t kStreamFrom = std::size_t{8} << 10;
  // Copies from one that is timed to the next.
  static constexpr std::uint32_t kTimedWhenNear = 16;
  static constexpr std::uint32_t kTimedWhenFar = 256;
  static constexpr double kFarBytesPerNs = 4;
  void copy_as_is_best(void* to, const void* from, std::size_t bytes) noexcept;

  std::uint32_t until_timed_ = 0;
  std::uint32_t slow_ = 0;  // timed copies in a row that were slow: one may have been interrupted
  bool far_ = false;
};

}  // namespace hocket::engines::shm
