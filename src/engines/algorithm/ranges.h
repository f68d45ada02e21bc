// Index arithmetic for peers and for the parts of arrays. Pure functions. Ranks are in [0, n), and
// n is at least 1. The number of parts need not divide a count.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

#include "engine/call.h"

namespace hocket::algorithm {

// The interval [first, first + length), in any unit. A value.
struct Range {
  std::size_t first = 0;
  std::size_t length = 0;

  constexpr std::size_t end() const noexcept { return first + length; }
  bool operator==(const Range&) const = default;
};

// Divides `count` items into `parts` consecutive parts and returns part `index`. Lengths differ by
// at most one: the first count % parts parts are longer.
constexpr Range even_part(std::size_t count, int parts, int index) noexcept {
  const auto n = static_cast<std::size_t>(parts);
  const auto i = static_cast<std::size_t>(index);
  const std::size_t least = count / n;
  const std::size_t longer = count % n;
  return {i * least + std::min(i, longer), least + (i < longer ? 1 : 0)};
}

// Returns the number of pieces if `count` items are divided into pieces of `size` items. The last
// piece may be shorter. Returns 0 if `count` is 0.
constexpr std::size_t pieces(std::size_t count, std::size_t size) noexcept {
  return count / size + (count % size != 0 ? 1 : 0);
}

// Returns piece `index` of `whole`, divided into pieces of `size` items. If there is no such piece,
// returns an empty range at the end of `whole`.
constexpr Range piece(Range whole, std::size_t size, std::size_t index) noexcept {
  const std::size_t count = pieces(whole.length, size);
  const std::size_t first = index < count ? index * size : whole.length;
  return {whole.first + first, std::min(size, whole.length - first)};
}

// The most peers with which a rank exchanges messages at the same time, in algorithms in which it
// has a message for every rank. This limits the memory of a rank.
inline constexpr int kMostPeersAtOnce = 64;

// Returns the number of messages for a part of `count` items that is sent in pieces. An empty part
// is also sent as one message, so that both sides always compare lengths.
constexpr std::size_t messages_for(std::size_t count, std::size_t size) noexcept {
  return std::max<std::size_t>(1, pieces(count, size));
}

// Rounds `bytes` down to whole elements, and to whole cache lines if `bytes` is at least one line.
// Returns at least one element.
constexpr std::size_t whole_elements(std::size_t bytes, std::size_t element) noexcept {
  const std::size_t unit = bytes >= 64 ? std::max<std::size_t>(64, element) : element;
  return std::max(bytes / unit * unit, element);
}

// Returns how many bytes a rank receives from each of `peers` peers in one round. Two rounds are in
// progress at the same time, and together they fill `scratch` bytes. If the messages would become
// very short, the rounds use up to twice as much memory.
constexpr std::size_t lane_bytes(std::size_t scratch, std::size_t peers) noexcept {
  constexpr std::size_t kShort = 64 * 1024;
  const std::size_t one = scratch / peers;
  return std::max(one / 2, std::min(one, kShort));
}

// Returns `rank` modulo n, for ranks from -n up.
constexpr int wrap(int rank, int n) noexcept { return (rank + n) % n; }

// Returns the smallest k with 2^k >= n: the number of rounds of an algorithm that doubles its data.
constexpr int doublings(int n) noexcept { return std::bit_width(static_cast<unsigned>(n) - 1); }

// The binomial tree over the numbers 0 .. n - 1, with root 0. The parent of a number is the number
// without its lowest set bit. A child has one more bit set, below the lowest set bit.
//
//   n = 8:   0 -> 4 -> 6 -> 7        4 -> 5
//            0 -> 2 -> 3             0 -> 1
constexpr int tree_parent(int number) noexcept { return number & (number - 1); }
// Returns the additional bit of a number's first and largest child in a tree of n numbers. Halve
// the bit for the next children. Returns 0 if there is no child.
constexpr int tree_first_bit(int number, int n) noexcept {
  const int below = number == 0 ? 1 << doublings(n) : number & -number;
  return below >> 1;
}

// Returns the number of rounds of an all-to-all in which each rank has one partner in each round.
constexpr int rounds_of(int n) noexcept { return n % 2 == 0 ? n - 1 : n; }

// Returns the partner of `rank` in a round of an all-to-all. The relation is mutual, and each pair
// meets in exactly one round. If n is odd, one rank in each round is its own partner. If n is even,
// the last rank is the partner of this rank, so that no rank is idle.
constexpr int partner(int rank, int round, int n) noexcept {
  const int cycle = rounds_of(n);
  const int alone = (round % 2 == 0 ? round : round + cycle) / 2;  // round - alone = alone
  if (rank == cycle) return alone;
  return rank == alone && cycle < n ? cycle : wrap(round - rank, cycle);
}

// The position and length of each rank's part of an array, in bytes. A value; see `listed` for its
// lifetime.
class Parts {
 public:
  // All parts have `bytes` bytes.
  static constexpr Parts equal(std::size_t bytes) noexcept {
    Parts parts;
    parts.bytes_ = bytes;
    return parts;
  }
  // Divides `count` elements of `element` bytes equally among n ranks.
  static constexpr Parts split(std::size_t count, std::size_t element, int n) noexcept {
    Parts parts;
    parts.bytes_ = count;
    parts.element_ = element;
    parts.n_ = n;
    return parts;
  }
  // The parts of a v-form's call. The arrays to which `view` points must outlive the result.
  static constexpr Parts listed(const engine::PartsView& view) noexcept {
    Parts parts;
    parts.view_ = view;
    return parts;
  }

  // Returns whether `equal` made these parts. Then the parts are adjacent.
  constexpr bool are_equal() const noexcept { return view_.bytes == nullptr && n_ == 0; }
  constexpr Range of(int rank) const noexcept {
    const auto r = static_cast<std::size_t>(rank);
    if (view_.bytes != nullptr) return {view_.offsets[r], view_.bytes[r]};
    if (n_ == 0) return {r * bytes_, bytes_};
    const Range elements = even_part(bytes_, n_, rank);
    return {elements.first * element_, elements.length * element_};
  }

 private:
  engine::PartsView view_;  // listed: the parts
  std::size_t bytes_ = 0;   // equal: bytes of a part; split: number of elements
  std::size_t element_ = 1;
  int n_ = 0;  // split: number of parts; else 0
};

// Returns the bytes of the longest part.
constexpr std::size_t longest(const Parts& parts, int n) noexcept {
  if (parts.are_equal()) return parts.of(0).length;
  std::size_t most = 0;
  for (int i = 0; i < n; ++i) most = std::max(most, parts.of(i).length);
  return most;
}

}  // namespace hocket::algorithm
