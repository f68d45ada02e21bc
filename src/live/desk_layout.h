// What each rank lays out of its own for those who look at its job from outside: which groups it is
// in, and, where they are kept, its calls by kind. Written by its rank alone.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "base/short_text.h"
#include "control/host.h"
#include "engine/kinds.h"

namespace hocket::live {

inline constexpr std::size_t kSeats = 64;  // groups of one rank at a time; more are not shown
inline constexpr std::size_t kRows = 128;  // kinds, groups and engines; more are not counted
inline constexpr std::size_t kGroupNameBytes = 48;
inline constexpr std::size_t kEngineNameBytes = 16;

// One group of the rank. Taken by kBeingTaken; `block` is written last, and cleared first.
struct alignas(control::kCacheLine) GroupSeat {
  static constexpr std::uint64_t kBeingTaken = 1;
  base::Atomic<std::uint64_t> block{0};  // its offset; 0: the seat is free
  base::Atomic<std::int32_t> rank{0};    // this rank's in it
  base::Torn<base::ShortText<kGroupNameBytes>> name;
};

// Calls of up to 1 us, 4 us, 16 us, ..., 16.8 s, and longer ones.
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

// Calls of one kind in one group by one engine. `used` becomes kTaken last, once.
struct alignas(control::kCacheLine) MeterRow {
  enum : std::uint32_t { kFree, kBeingTaken, kTaken };
  base::Atomic<std::uint32_t> used{kFree};
  base::Plain<engine::Kind> kind = engine::Kind::kNone;
  base::Plain<base::ShortText<kEngineNameBytes>> engine;
  base::Plain<base::ShortText<kGroupNameBytes>> group;
  base::Atomic<std::uint64_t> failed{0};
  base::Atomic<std::uint64_t> bytes{0};
  base::Atomic<std::uint64_t> nanoseconds{0};
  std::array<base::Atomic<std::uint64_t>, kBuckets> ended{};  // by how long they took
};

// Lies where the rank has allocated first.
struct DeskLayout {
  enum Manner : std::uint64_t {
    kNone = 0,
    kPrivate = 0x9d1f7a3c736b6465,
    kShown = 0x9d1f7a3c736b6466,
  };
  base::Atomic<std::uint64_t> manner{kNone};  // kPrivate: the rank shows nothing
  base::Atomic<std::uint32_t> meters{0};      // 1: calls are counted below
  std::array<GroupSeat, kSeats> seats;
  std::array<MeterRow, kRows> rows;  // takes memory only where it is written
};

}  // namespace hocket::live
