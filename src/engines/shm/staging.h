// The copies that move data between ranks, and the choice of the stores that these copies use.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "foundation/core/claim.h"
#include "foundation/core/reduce.h"

namespace hocket::engines::shm {

// Returns the stores for a result of this size. A result of kStreamFrom bytes does not stay in the
// caches, so it is written past them.
inline core::Stores stores_for(std::size_t result_bytes) noexcept {
  constexpr std::size_t kStreamFrom = std::size_t{8} << 20;
  return result_bytes >= kStreamFrom ? core::Stores::kStreaming : core::Stores::kCached;
}

// The readers of staged data: one reader, or several that each read all of it.
enum class Readers : std::uint8_t { kOne, kSeveral };

// Copies data into shared memory that peers are about to read. A value, used by one thread at a
// time.
//
// Peers have read the old contents, so their caches hold the lines of the memory. An ordinary store
// first fetches such a line, although it overwrites the line. There are two remedies:
//
// - If a line has a single reader, the reader can *claim* it (foundation/core/claim.h). The core
//   of the reader then owns the line, so the writer's next store need not invalidate shared copies.
//   Claiming is fast if the two cores share a cache.
// - Stores past the caches fetch nothing, and are equally fast at every distance of the cores. But
//   readers then load the data from main memory (docs/performance.md has figures).
//
// Without a remedy, the fetches take as long as the copy itself if the cores share the last cache.
// If the cores share no cache, the fetches take several times as long. The system's list of caches
// does not tell reliably how near the readers are, least of all in a virtual machine that moves
// between cores. So the Stager measures: now and then it times an ordinary copy, or the access to
// claimed lines.
class Stager {
 public:
  // Limits in bytes from which stores past the caches are faster, if the last cache is shared and
  // lines are not claimed. copied_from() is for data that readers copy, kReducedFrom for arrays
  // that readers reduce.
  static std::size_t copied_from() noexcept {
    return core::copies_by_itself() ? std::size_t{8} << 20 : std::size_t{32} << 10;
  }
  static constexpr std::size_t kReducedFrom = std::size_t{1} << 20;

  explicit Stager(Readers readers) noexcept
      : claims_(readers == Readers::kOne && core::can_claim()),
        shared_(claims_ ? Shared::kAllCaches : Shared::kLastCache),
        until_timed_(claims_ ? kWarmUpBytes : 0) {}

  // Copies `bytes` bytes. `is_long` says whether the data reaches the limit, copied_from() or
  // kReducedFrom.
  void copy(void* to, const void* from, std::size_t bytes, bool is_long) noexcept {
    stores_ =
        bytes < kLeast || until_timed_ <= warm_up_bytes() ? core::Stores::kCached : best(is_long);
    if (bytes >= kLeast && until_timed_ == 0) return copy_timed(to, from, bytes);
    until_timed_ -= std::min(until_timed_, bytes);
    core::copy(to, from, bytes, stores_);
  }
  // Returns whether the reader should claim the lines of the last copy. Always false if there are
  // several readers.
  bool claimable() const noexcept { return claims_ && stores_ == core::Stores::kCached; }
  // Returns whether the reader claims lines, and the measurements found the caches shared.
  bool claims_well() const noexcept { return claims_ && shared_ == Shared::kAllCaches; }

 private:
  // The nearest memory that the writer and the readers share.
  enum class Shared : std::uint8_t { kAllCaches, kLastCache, kMemory };
  // Shorter copies are not timed, and use ordinary stores.
  static constexpr std::size_t kLeast = std::size_t{2} << 10;
  // Before a measurement, so many bytes are copied by ordinary stores. So the reader has claimed
  // the measured lines: the bytes cover all chunks of a rank, or a whole ring.
  static constexpr std::size_t kWarmUpBytes = std::size_t{512} << 10;

  std::size_t warm_up_bytes() const noexcept { return claims_ ? kWarmUpBytes : 0; }
  core::Stores best(bool is_long) const noexcept {
    const bool streams = shared_ == Shared::kMemory || (shared_ == Shared::kLastCache && is_long);
    return streams ? core::Stores::kStreaming : core::Stores::kCached;
  }
  void copy_timed(void* to, const void* from, std::size_t bytes) noexcept;

  bool claims_;
  Shared shared_;
  bool doubts_ = false;  // the last timed copy was slower than `shared_` suggests
  core::Stores stores_ = core::Stores::kCached;  // of the last copy
  std::size_t until_timed_;                      // bytes to copy before the next timed copy
};

// Finds the faster kind of stores for a long array that all ranks reduce, if the last cache is
// shared. On some processors stores past the caches are faster by a quarter, on others ordinary
// stores are faster. So this class times calls that alternate between both kinds, and repeats the
// trial every kRound calls. A value.
class LongStores {
 public:
  // Starts a call. All ranks start the same calls, so each trial has the same kind of stores on all
  // ranks.
  void begin() noexcept {
    const unsigned turn = calls_++ % kRound;
    if (turn == 0) least_ = {kNever, kNever};
    is_streaming_ = turn < kTried ? turn % 2 == 0 : least_[1] <= least_[0];
  }
  bool is_streaming() const noexcept { return is_streaming_; }
  // Records how long a call took after all ranks had arrived. Keeps the minimum, because a rank may
  // be interrupted.
  void took(double nanoseconds_a_byte) noexcept {
    least_[is_streaming_] = std::min(least_[is_streaming_], nanoseconds_a_byte);
  }

  static constexpr unsigned kTried = 12;
  static constexpr unsigned kRound = 512;

 private:
  static constexpr double kNever = 1e300;
  std::array<double, 2> least_{kNever, kNever};  // ordinary stores, stores past the caches
  unsigned calls_ = 0;
  bool is_streaming_ = true;
};

// A view of the data that a peer has staged.
struct Staged {
  std::span<const std::byte> bytes;
  bool claimable = false;  // see Stager

  Staged part(std::size_t first, std::size_t length) const noexcept {
    return {bytes.subspan(first, length), claimable};
  }
  void copy_to(void* to, core::Stores stores) const noexcept {
    if (claimable) return core::copy_claimed(to, bytes.data(), bytes.size());
    core::copy(to, bytes.data(), bytes.size(), stores);
  }
};

}  // namespace hocket::engines::shm
