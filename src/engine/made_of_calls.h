// Marks calls that are recorded as another kind: parts of composed calls, and calls with a special
// implementation. The mark, in the signature's digest, distinguishes them from ordinary calls of
// the recorded kind.
#pragma once

#include <cstdint>

#include "engine/kinds.h"

namespace hocket::engine {

enum class Made : std::uint8_t {
  kNot,
  kExtremes,    // argmin and argmax: recorded as all_reduce by min or max
  kByOperator,  // a reduction by an operator of the program
  kPart,        // a part of a composed call
};

namespace detail {
// The marks. A digest with a mark looks like this:
//
//   63           32 31            8 7             0
//   | mark         | hash          | kind          |   kByOperator, kPart
//   | mark         | hash                          |   kExtremes
//
// The hash covers the other facts to agree on. The kind is that of the call that the program made.
inline constexpr std::uint64_t kExtremes = std::uint64_t{0x65787472} << 32;
inline constexpr std::uint64_t kByOperator = std::uint64_t{0x6f776e6f} << 32;
inline constexpr std::uint64_t kPart = std::uint64_t{0x70617274} << 32;
inline constexpr std::uint64_t kHash = 0xffffffff;
constexpr std::uint64_t folded(std::uint64_t hash) noexcept {
  return (hash ^ (hash >> 32)) & kHash;
}
}  // namespace detail

// Return the Signature::digest of a marked call. `agreed` is a hash of the other facts to agree on.
constexpr std::uint64_t digest_of_extremes(std::uint64_t agreed) noexcept {
  return detail::kExtremes | detail::folded(agreed);
}
constexpr std::uint64_t digest_by_operator(Kind kind, std::uint64_t agreed) noexcept {
  return detail::kByOperator | (detail::folded(agreed) & ~std::uint64_t{0xff}) |
         static_cast<std::uint64_t>(kind);
}
// `agreed` is the digest that the part has as an ordinary call.
constexpr std::uint64_t digest_of_part(Kind whole, std::uint64_t agreed) noexcept {
  return detail::kPart | (detail::folded(agreed) & ~std::uint64_t{0xff}) |
         static_cast<std::uint64_t>(whole);
}

constexpr Made made_of(Kind recorded, std::uint64_t digest) noexcept {
  const std::uint64_t mark = digest & ~detail::kHash;
  if (mark == detail::kPart) return Made::kPart;
  if (recorded == Kind::kAllReduce && mark == detail::kExtremes) return Made::kExtremes;
  return is_reduction(recorded) && mark == detail::kByOperator ? Made::kByOperator : Made::kNot;
}
// Returns the kind of the call that the program made, for kByOperator and kPart. The digest may
// come from a faulty peer, so the byte is checked.
constexpr Kind kind_made(std::uint64_t digest) noexcept {
  const auto kind = static_cast<int>(digest & 0xff);
  return kind < kKindCount ? static_cast<Kind>(kind) : Kind::kNone;
}

}  // namespace hocket::engine
