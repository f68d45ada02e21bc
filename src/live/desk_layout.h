// What each rank lays out of its own for those who look at its job from outside: which groups it is
// in. Written by its rank alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/atomic.h"
#include "base/short_text.h"
#include "control/host.h"

namespace hocket::live {

inline constexpr std::size_t kSeats = 64;  // groups of one rank at a time; more are not shown
inline constexpr std::size_t kGroupNameBytes = 48;

// One group of the rank. Taken by kBeingTaken; `block` is written last, and cleared first.
struct alignas(control::kCacheLine) GroupSeat {
  static constexpr std::uint64_t kBeingTaken = 1;
  base::Atomic<std::uint64_t> block{0};  // its offset; 0: the seat is free
  base::Atomic<std::int32_t> rank{0};    // this rank's in it
  base::Torn<base::ShortText<kGroupNameBytes>> name;
};

// Lies where the rank has allocated first.
struct DeskLayout {
  enum Manner : std::uint64_t {
    kNone = 0,
    kPrivate = 0x9d1f7a3c736b6465,
    kShown = 0x9d1f7a3c736b6466,
  };
  base::Atomic<std::uint64_t> manner{kNone};  // kPrivate: the rank shows nothing
  std::array<GroupSeat, kSeats> seats;
};

}  // namespace hocket::live
