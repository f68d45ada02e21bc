// The copies that move data between ranks, and the kind of stores that they use.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "foundation/core/claim.h"
#include "foundation/core/reduce.h"

namespace hocket::engines::shm {

// Results of this size do not stay in the caches, so they are written past them.
inline core::Stores stores_for(std::size_t result_bytes) noexcept {
  constexpr std::size_t kStreamFrom = std::size_t{8} << 20;
  return result_bytes >= kStreamFrom ? core::Stores::kStreaming : core::Stores::kCached;
}

// The readers of staged data: one reader, or several that each read all of it.
enum class Readers : std::uint8_t { kOne, kSeveral };

// Copies into shared memory that peers are about to read. A value; one thread at a time.
//
// Peers have read the old contents, so their caches hold its lines. An ordinary store first fetches
// such a line, only to overwrite it. If a line has a single reader, that reader can *claim* it
// (foundation/core/claim.h). Claiming is fast if the two cores share a cache.
//
// Otherwise an ordinary store takes as long as the copy itself if the cores share the last cache,
// and several times as long if they share none. Stores past the caches fetch nothing, and are
// equally fast everywhere. But readers then fetch their data from main memory (docs/performance.md
// has figures). No list of caches tells reliably how near the readers are, least of all in a
// virtual machine that moves between cores. So the Stager measures: it sometimes times an ordinary
// copy, or the access to claimed lines.
class Stager {
 public:
  // Bytes from which stores past the caches are faster, if the last cache is shared and lines are
  // not claimed. The first limit is for data that readers copy, the second for arrays that they
  // reduce.
  static std::size_t copied_from() noexcept {
    return core::copies_by_itself() ? std::size_t{8} << 20 : std::size_t{32} << 10;
  }
  static constexpr std::size_t kReducedFrom = std::size_t{1} << 20;

  explicit Stager(Readers readers) noexcept
      : claims_(readers == Readers::kOne && core::can_claim()),
        shared_(claims_ ? Shared::kAllCaches : Shared::kLastCache),
        until_timed_(claims_ ? kLap : 0) {}

  // Copies `bytes` bytes. `is_long` says whether the applicable limit is reached.
  void copy(void* to, const void* from, std::size_t bytes, bool is_long) noexcept {
    stores_ = bytes < kLeast || until_timed_ <= lap() ? core::Stores::kCached : best(is_long);
    if (bytes >= kLeast && until_timed_ == 0) return copy_timed(to, from, bytes);
    until_timed_ -= std::min(until_timed_, bytes);
    core::copy(to, from, bytes, stores_);
  }
  // Returns whether the only reader should claim the lines of the last copy.
  bool claimable() const noexcept { return claims_ && stores_ == core::Stores::kCached; }
  // Returns whether the reader claims lines and no copy was slow.
  bool claims_well() const noexcept { return claims_ && shared_ == Shared::kAllCaches; }

 private:
  // The nearest memory that the writer and the readers share.
  enum class Shared : std::uint8_t { kAllCaches, kLastCache, kMemory };
  static constexpr std::size_t kLeast = std::size_t{2} << 10;
  // Bytes that are copied by ordinary stores before a measurement, so that the measured lines were
  // claimed. It covers a rank's chunks, and more than a ring.
  static constexpr std::size_t kLap = std::size_t{512} << 10;

  std::size_t lap() const noexcept { return claims_ ? kLap : 0; }
  core::Stores best(bool is_long) const noexcept {
    const bool past = shared_ == Shared::kMemory || (shared_ == Shared::kLastCache && is_long);
    return past ? core::Stores::kStreaming : core::Stores::kCached;
  }
  void copy_timed(void* to, const void* from, std::size_t bytes) noexcept;

  bool claims_;
  Shared shared_;
  bool doubts_ = false;  // one timed copy was slower than expected
  core::Stores stores_ = core::Stores::kCached;
  std::size_t until_timed_;  // bytes
};

// Finds the faster stores for a long array that all ranks reduce, if the last cache is shared. On
// one processor stores past the caches are faster by a quarter, on another ordinary stores are. So
// it times calls with both kinds in turn, and repeats this now and then. A value.
class LongStores {
 public:
  // Starts a call. All ranks start the same calls, so they use the same kind of stores in each.
  void begin() noexcept {
    const unsigned turn = calls_++ % kRound;
    if (turn == 0) least_ = {kNever, kNever};
    past_ = turn < kTried ? turn % 2 == 0 : least_[1] <= least_[0];
  }
  bool past() const noexcept { return past_; }
  // Records the time of a call since all ranks arrived. The minimum counts, because ranks may be
  // interrupted.
  void took(double nanoseconds_a_byte) noexcept {
    least_[past_] = std::min(least_[past_], nanoseconds_a_byte);
  }

  static constexpr unsigned kTried = 12;
  static constexpr unsigned kRound = 512;

 private:
  static constexpr double kNever = 1e300;
  std::array<double, 2> least_{kNever, kNever};  // ordinary stores, stores past the caches
  unsigned calls_ = 0;
  bool past_ = true;
};

// The data that a peer has staged. A view.
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
