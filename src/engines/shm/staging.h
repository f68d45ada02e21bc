// How what goes from rank to rank is stored.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "foundation/core/claim.h"
#include "foundation/core/reduce.h"

namespace hocket::engines::shm {

// Results this large leave the caches anyway: write them past.
inline core::Stores stores_for(std::size_t result_bytes) noexcept {
  constexpr std::size_t kStreamFrom = std::size_t{8} << 20;
  return result_bytes >= kStreamFrom ? core::Stores::kStreaming : core::Stores::kCached;
}

// Who reads what is staged: its one reader, or several, each all of it.
enum class Readers : std::uint8_t { kOne, kSeveral };

// Copies into shared memory that peers are about to read. A value, of one thread at a time.
//
// The peers have read what was there before, so its lines lie in their caches, and an ordinary
// store first fetches each of them, only to overwrite it. Where a line has a single reader, that
// one *claims* it (foundation/core/claim.h), which makes this quick as long as the two cores share a cache.
// Where lines have several readers, or cannot be claimed, an ordinary store takes as long as the
// copy itself where the cores share the last cache, and several times as long where they share
// none. Stores past the caches fetch nothing and are equally quick everywhere, but what they wrote
// is read from main memory (docs/performance.md has figures). How far the readers are, no list of
// caches tells for sure, least of all in a virtual machine that moves from core to core: so now and
// then an ordinary copy is timed, or how long lines take that were claimed.
class Stager {
 public:
  // From how many bytes on stores past the caches are quicker where the last cache is shared and
  // lines are not claimed: of what its readers copy on, and of an array that they reduce.
  static std::size_t copied_from() noexcept {
    return core::copies_by_itself() ? std::size_t{8} << 20 : std::size_t{32} << 10;
  }
  static constexpr std::size_t kReducedFrom = std::size_t{1} << 20;

  explicit Stager(Readers readers) noexcept
      : claims_(readers == Readers::kOne && core::can_claim()),
        shared_(claims_ ? Shared::kAllCaches : Shared::kLastCache),
        until_timed_(claims_ ? kLap : 0) {}

  // `is_long`: whether one of the two is reached.
  void copy(void* to, const void* from, std::size_t bytes, bool is_long) noexcept {
    stores_ = bytes < kLeast || until_timed_ <= lap() ? core::Stores::kCached : best(is_long);
    if (bytes >= kLeast && until_timed_ == 0) return copy_timed(to, from, bytes);
    until_timed_ -= std::min(until_timed_, bytes);
    core::copy(to, from, bytes, stores_);
  }
  // Whether its one reader is to claim what was copied last.
  bool claimable() const noexcept { return claims_ && stores_ == core::Stores::kCached; }
  // Whether its one reader claims, and no copy was slow for all that.
  bool claims_well() const noexcept { return claims_ && shared_ == Shared::kAllCaches; }

 private:
  // What the writer and the readers share.
  enum class Shared : std::uint8_t { kAllCaches, kLastCache, kMemory };
  static constexpr std::size_t kLeast = std::size_t{2} << 10;
  // Bytes that go the ordinary way first, so that the lines that are timed were claimed: as many as
  // there are in a rank's chunks, and more than in a ring.
  static constexpr std::size_t kLap = std::size_t{512} << 10;

  std::size_t lap() const noexcept { return claims_ ? kLap : 0; }
  core::Stores best(bool is_long) const noexcept {
    const bool past = shared_ == Shared::kMemory || (shared_ == Shared::kLastCache && is_long);
    return past ? core::Stores::kStreaming : core::Stores::kCached;
  }
  void copy_timed(void* to, const void* from, std::size_t bytes) noexcept;

  bool claims_;
  Shared shared_;
  bool doubts_ = false;  // a timed copy was slower than it should have been
  core::Stores stores_ = core::Stores::kCached;
  std::size_t until_timed_;  // bytes
};

// Which stores are quicker for a long array that all reduce together, where the last cache is
// shared: on one processor those past the caches by a quarter, on another the ordinary ones. So
// calls are timed, both ways in turn, and now and then again. A value.
class LongStores {
 public:
  // A call begins. All ranks begin the same ones, so that they try the same way in the same call.
  void begin() noexcept {
    const unsigned turn = calls_++ % kRound;
    if (turn == 0) least_ = {kNever, kNever};
    past_ = turn < kTried ? turn % 2 == 0 : least_[1] <= least_[0];
  }
  bool past() const noexcept { return past_; }
  // How long it has taken since all had come: the least counts, as ranks are interrupted.
  void took(double nanoseconds_a_byte) noexcept {
    least_[past_] = std::min(least_[past_], nanoseconds_a_byte);
  }

  static constexpr unsigned kTried = 12;
  static constexpr unsigned kRound = 512;

 private:
  static constexpr double kNever = 1e300;
  std::array<double, 2> least_{kNever, kNever};  // ordinary stores, those past the caches
  unsigned calls_ = 0;
  bool past_ = true;
};

// What a peer staged. A view.
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
