// Marks of calls that are recorded as another kind: calls that consist of other calls, and calls
// with a special implementation. The mark distinguishes them from ordinary calls of that kind.
#pragma once

#include <cstdint>

#include "engine/kinds.h"

namespace hocket::engine {

enum class Made : std::uint8_t {
  kNot,
  kExtremes,    // argmin and argmax: recorded as all_reduce by min or max
  kByOperator,  // a reduction by an operator of the program
  kMeeting,     // the barrier before a call that consists of other calls
};

namespace detail {
// The upper half of a digest. The lower half is the hash of the other facts to agree on. Its last
// byte is the kind that a barrier belongs to.
inline constexpr std::uint64_t kExtremes = std::uint64_t{0x65787472} << 32;
inline constexpr std::uint64_t kByOperator = std::uint64_t{0x6f776e6f} << 32;
inline constexpr std::uint64_t kMeeting = std::uint64_t{0x6d656574} << 32;
inline constexpr std::uint64_t kHash = 0xffffffff;
constexpr std::uint64_t folded(std::uint64_t hash) noexcept {
  return (hash ^ (hash >> 32)) & kHash;
}
}  // namespace detail

// Return the Signature::digest of such calls.
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
// Returns the kind of the last two. A peer wrote the digest, so the byte may be no kind.
constexpr Kind kind_made(std::uint64_t digest) noexcept {
  const auto kind = static_cast<int>(digest & 0xff);
  return kind < kKindCount ? static_cast<Kind>(kind) : Kind::kNone;
}

}  // namespace hocket::engine
