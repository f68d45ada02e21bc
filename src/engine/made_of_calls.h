// Calls that are made of others, or in a way of their own, and that are recorded as a kind that is
// not theirs: what tells them from that kind's own.
#pragma once

#include <cstdint>

#include "engine/kinds.h"

namespace hocket::engine {

enum class Made : std::uint8_t {
  kNot,
  kExtremes,    // argmin, argmax: recorded as all_reduce by min, max
  kByOperator,  // a reduction by an operator of the program's own
  kMeeting,     // the barrier in front of what is made of other calls
};

namespace detail {
// The upper half of a digest; the lower one is the hash of what else all ranks must agree in, with
// the kind that a barrier goes with in its last byte.
inline constexpr std::uint64_t kExtremes = std::uint64_t{0x65787472} << 32;
inline constexpr std::uint64_t kByOperator = std::uint64_t{0x6f776e6f} << 32;
inline constexpr std::uint64_t kMeeting = std::uint64_t{0x6d656574} << 32;
inline constexpr std::uint64_t kHash = 0xffffffff;
constexpr std::uint64_t folded(std::uint64_t hash) noexcept {
  return (hash ^ (hash >> 32)) & kHash;
}
}  // namespace detail

// Signature::digest of such calls.
constexpr std::uint64_t digest_of_extremes(std::uint64_t agreed) noexcept {
  return detail::kExtremes | detail::folded(agreed);
}
constexpr std::uint64_t digest_by_operator(Kind kind, std::uint64_t agreed) noexcept {
  return detail::kByOperator | (detail::folded(agreed) & ~std::uint64_t{0xff}) |
         static_cast<std::uint64_t>(kind);
}
constexpr std::uint64_t digest_of_meeting(Kind kind, std::uint64_t agreed) noexcept {
  return detail::kMeeting | (detail::folded(agreed) & ~std::uint64_t{0xff}) |
         static_cast<std::uint64_t>(kind);
}

constexpr Made made_of(Kind recorded, std::uint64_t digest) noexcept {
  const std::uint64_t mark = digest & ~detail::kHash;
  if (recorded == Kind::kAllReduce && mark == detail::kExtremes) return Made::kExtremes;
  if (recorded != Kind::kBarrier && !is_reduction(recorded)) return Made::kNot;
  if (recorded == Kind::kBarrier && mark == detail::kMeeting) return Made::kMeeting;
  return mark == detail::kByOperator ? Made::kByOperator : Made::kNot;
}
// Of the last two. What a peer has written may be no kind at all.
constexpr Kind kind_made(std::uint64_t digest) noexcept {
  const auto kind = static_cast<int>(digest & 0xff);
  return kind < kKindCount ? static_cast<Kind>(kind) : Kind::kNone;
}

}  // namespace hocket::engine
