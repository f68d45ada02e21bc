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
// store first fetches each of them, only to overwrite it. Where the two cores share their caches
// that costs next to nothing, where they share the last one as much as the copy itself, and else
// several times as much. Stores past the caches fetch nothing and are equally quick everywhere, but
// what they wrote is read from main memory (docs/performance.md has figures). How far the readers
// are, no list of caches tells for sure, least of all in a virtual machine that moves from core to
// core: so now and then an ordinary copy is timed.
class Stager {
 public:
  // From how many bytes on stores past the caches are quicker where the last cache is shared: of
  // what its readers copy on, and of an array that they reduce.
  static constexpr std::size_t kCopiedFrom = std::size_t{32} << 10;
  static constexpr std::size_t kReducedFrom = std::size_t{1} << 20;

  // `is_long`: whether one of the two is reached.
  void copy(void* to, const void* from, std::size_t bytes, bool is_long) noexcept {
    if (bytes < kLeast) return core::copy(to, from, bytes, core::Stores::kCached);
    const core::Stores stores = best(is_long);
    if (until_timed_ == 0) return copy_timed(to, from, bytes, stores);
    --until_timed_;
    core::copy(to, from, bytes, stores);
  }

 private:
  // What the writer and the readers share.
  enum class Shared : std::uint8_t { kAllCaches, kLastCache, kMemory };
  static constexpr std::size_t kLeast = std::size_t{2} << 10;

  core::Stores best(bool is_long) const noexcept {
    const bool past = shared_ == Shared::kMemory || (shared_ == Shared::kLastCache && is_long);
    return past ? core::Stores::kStreaming : core::Stores::kCached;
  }
  void copy_timed(void* to, const void* from, std::size_t bytes, core::Stores usual) noexcept;

  Shared shared_ = Shared::kLastCache;
  bool doubts_ = false;  // a timed copy was slower than it should have been
  std::uint32_t until_timed_ = 0;
};

}  // namespace hocket::engines::shm
