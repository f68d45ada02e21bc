// The data that each rank publishes for observers of its job: its groups and, if metrics are kept,
// its calls by kind. Only the rank writes them. Other processes write to one place,
// PositionQuestion, to ask in which line of its program the rank is.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/kinds.h"
#include "foundation/base/atomic.h"
#include "foundation/base/short_text.h"
#include "foundation/os/futex.h"
#include "hocket/live.h"
#include "membership/control/host/view.h"

namespace hocket::live {

inline constexpr std::size_t kGroupEntries =
    64;                                    // groups of one rank at a time; more are not shown
inline constexpr std::size_t kRows = 128;  // calls that find no free row are not counted
inline constexpr std::size_t kGroupNameBytes = 48;
inline constexpr std::size_t kEngineNameBytes = 16;

using GroupName = base::ShortText<kGroupNameBytes>;
using EngineName = base::ShortText<kEngineNameBytes>;

// A group as its rank describes it on the board. A value.
struct EntryContent {
  std::uint64_t block = 0;  // offset of the group's block in the segment
  int rank = 0;             // the rank's number in the group
  GroupName name;
};

// The entry of one group. The rank's threads write it.
struct alignas(control::kCacheLine) BoardEntry {
  static constexpr std::uint64_t kFree = 0;
  static constexpr std::uint64_t kBeingTaken = 1;
  base::Atomic<std::uint64_t> block{kFree};
  base::Torn<std::int32_t> rank = 0;
  base::Torn<GroupName> name;

  // Returns false if another group has this entry.
  bool take(const EntryContent& group) noexcept {
    std::uint64_t free = kFree;
    if (!block.compare_exchange_strong(free, kBeingTaken, std::memory_order_acquire)) return false;
    // Readers must see `block` change before they can see the new rank and name.
    base::thread_fence(std::memory_order_release);
    rank = group.rank;
    name = group.name;
    block.store(group.block, std::memory_order_release);
    return true;
  }
  // Frees the entry. Returns false if it is not this group's.
  bool leave(std::uint64_t group) noexcept {
    return block.compare_exchange_strong(group, kFree, std::memory_order_release);
  }
  // Returns nothing if no group has the entry, or if another group takes it during the read.
  std::optional<EntryContent> read() const noexcept {
    const std::uint64_t before = block.load(std::memory_order_acquire);
    if (before <= kBeingTaken) return std::nullopt;
    const EntryContent group{.block = before, .rank = rank, .name = name};
    base::thread_fence(std::memory_order_acquire);
    if (block.load(std::memory_order_relaxed) != before) return std::nullopt;
    return group;
  }
};

// Buckets of the histogram of durations: up to 1 us, 4 us, 16 us, ..., 16.8 s, and longer.
inline constexpr std::size_t kBuckets = 14;
constexpr std::size_t bucket_of(std::uint64_t ns) noexcept {
  const std::uint64_t us = (ns + 999) / 1000;
  const auto bits = static_cast<std::size_t>(std::bit_width(us == 0 ? us : us - 1));
  const std::size_t bucket = (bits + 1) / 2;
  return bucket < kBuckets ? bucket : kBuckets - 1;
}
constexpr double upper_bound_s(std::size_t bucket) noexcept {
  return 1e-6 * static_cast<double>(std::uint64_t{1} << (2 * bucket));
}
static_assert(bucket_of(0) == 0 && bucket_of(1000) == 0 && bucket_of(1001) == 1 &&
              bucket_of(4000) == 1 && bucket_of(4001) == 2 && bucket_of(~0ULL / 2) == kBuckets - 1);

// The key under which calls are counted: calls of one kind in one group by one engine. Messages on
// the host have no engine. A value.
struct Metered {
  engine::Kind kind = engine::Kind::kNone;
  LiveTimed timed = LiveTimed::kOnHost;
  EngineName engine;
  GroupName group;
};

// The counts of one key. A row is never freed.
struct alignas(control::kCacheLine) MeterRow {
  enum : std::uint32_t { kFree, kBeingTaken, kTaken };
  base::Atomic<std::uint32_t> used{kFree};
  base::NonAtomic<engine::Kind> kind = engine::Kind::kNone;
  base::NonAtomic<LiveTimed> timed = LiveTimed::kOnHost;
  base::NonAtomic<EngineName> engine;
  base::NonAtomic<GroupName> group;
  base::Atomic<std::uint64_t> failed{0};
  base::Atomic<std::uint64_t> bytes{0};
  base::Atomic<std::uint64_t> nanoseconds{0};
  std::array<base::Atomic<std::uint64_t>, kBuckets> ended{};  // numbers of calls, by duration

  bool is_taken() const noexcept { return used.load(std::memory_order_acquire) == kTaken; }
  // Takes the row for a key. Returns true if the row was free, or has this key already.
  bool take(const Metered& its) noexcept {
    std::uint32_t state = kFree;
    if (used.compare_exchange_strong(state, kBeingTaken, std::memory_order_acquire)) {
      kind = its.kind;
      timed = its.timed;
      engine = its.engine;
      group = its.group;
      used.store(kTaken, std::memory_order_release);
      return true;
    }
    if (state != kTaken) return false;  // another thread is writing the row's key
    const EngineName named = engine;
    const GroupName grouped = group;
    return kind == its.kind && timed == its.timed && named.view() == its.engine.view() &&
           grouped.view() == its.group.view();
  }
};

inline constexpr std::size_t kPositionBytes = 192;
using PositionText = base::ShortText<kPositionBytes>;

// The answer of a rank: the position in its program when it answered. A value.
struct ToldPosition {
  std::uint64_t moves = 0;  // number of calls that the rank had begun and ended
  PositionText text;
};

// The mailbox through which other ranks of the host ask for this rank's position, and a thread of
// this rank answers.
struct alignas(control::kCacheLine) PositionQuestion {
  static constexpr std::uint64_t kNone = 0;
  static constexpr std::uint64_t kBeingWritten = ~std::uint64_t{0};
  os::FutexWord asked{0};                     // number of questions; its rank sleeps on it
  base::Atomic<std::uint32_t> tells{0};       // 1: a thread of the rank answers
  base::Atomic<std::int64_t> last_asked{0};   // ns of the steady clock
  base::Atomic<std::uint64_t> answer{kNone};  // number of the last answer
  base::Torn<std::uint64_t> moves = 0;
  base::Torn<PositionText> text;

  // Call it from one thread at a time. Numbers of answers count from 1.
  void write(std::uint64_t number, const ToldPosition& told) noexcept {
    answer.store(kBeingWritten, std::memory_order_relaxed);
    base::thread_fence(std::memory_order_release);
    moves = told.moves;
    text = told.text;
    answer.store(number, std::memory_order_release);
  }
  // Returns nothing if there is no answer, or if a new one is written during the read.
  std::optional<ToldPosition> read() const noexcept {
    const std::uint64_t before = answer.load(std::memory_order_acquire);
    if (before == kNone || before == kBeingWritten) return std::nullopt;
    const ToldPosition told{.moves = moves, .text = text};
    base::thread_fence(std::memory_order_acquire);
    if (answer.load(std::memory_order_relaxed) != before) return std::nullopt;
    return told;
  }
};

// The board is its rank's first allocation in the segment, so that observers find it.
struct BoardLayout {
  enum Manner : std::uint64_t {
    kNone = 0,
    kPrivate = 0x9d1f7a3c736b6469,
    kShown = 0x9d1f7a3c736b646a,
  };
  base::Atomic<std::uint64_t> manner{kNone};  // kPrivate: the rank shows nothing
  base::Atomic<std::uint32_t> meters{0};      // 1: calls are counted below
  PositionQuestion place;
  std::array<BoardEntry, kGroupEntries> groups;
  std::array<MeterRow, kRows> rows;  // takes memory only where it is written
};

}  // namespace hocket::live
