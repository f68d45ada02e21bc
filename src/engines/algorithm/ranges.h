// Index arithmetic: peers, and the parts of arrays. Pure functions. Ranks are in [0, n), n is at
// least 1, and counts need not divide.
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

// Returns part `index` of `count` items cut into `parts` consecutive parts. Lengths differ by at
// most one: the first count % parts parts are longer.
constexpr Range even_part(std::size_t count, int parts, int index) noexcept {
  const auto n = static_cast<std::size_t>(parts);
  const auto i = static_cast<std::size_t>(index);
  const std::size_t least = count / n;
  const std::size_t longer = count % n;
  return {i * least + std::min(i, longer), least + (i < longer ? 1 : 0)};
}

// Returns the number of pieces of `size` items that `count` items make. The last piece may be
// shorter. 0 for no items.
constexpr std::size_t pieces(std::size_t count, std::size_t size) noexcept {
  return count / size + (count % size != 0 ? 1 : 0);
}

// Returns piece `index` of `whole`. From pieces(whole.length, size) on it is empty, at the end.
constexpr Range piece(Range whole, std::size_t size, std::size_t index) noexcept {
  const std::size_t count = pieces(whole.length, size);
  const std::size_t first = index < count ? index * size : whole.length;
  return {whole.first + first, std::min(size, whole.length - first)};
}

// Maximum number of peers with messages in progress at once, if there are as many messages as
// ranks. It limits the memory of a rank.
inline constexpr int kMostPeersAtOnce = 64;

// Returns the number of messages for a part that is sent in pieces. An empty part sends one message
// too, so that both sides always compare lengths.
constexpr std::size_t messages_for(std::size_t count, std::size_t size) noexcept {
  return std::max<std::size_t>(1, pieces(count, size));
}

// Returns the largest number of bytes up to `bytes` that contains whole elements, and whole cache
// lines if one fits. At least one element.
constexpr std::size_t whole_elements(std::size_t bytes, std::size_t element) noexcept {
  const std::size_t unit = bytes >= 64 ? std::max<std::size_t>(64, element) : element;
  return std::max(bytes / unit * unit, element);
}

// Returns the bytes of a round with each of `peers` peers, when two rounds are in progress. The
// rounds fill `scratch`. If messages would be very short, they use twice as much.
constexpr std::size_t lane_bytes(std::size_t scratch, std::size_t peers) noexcept {
  constexpr std::size_t kShort = 64 * 1024;
  const std::size_t one = scratch / peers;
  return std::max(one / 2, std::min(one, kShort));
}

// Returns `rank` modulo n, for ranks from -n up.
constexpr int wrap(int rank, int n) noexcept { return (rank + n) % n; }

// Returns the smallest k with 2^k >= n: the number of rounds of an algorithm that doubles its data.
constexpr int doublings(int n) noexcept { return std::bit_width(static_cast<unsigned>(n) - 1); }

// The binomial tree over 0 .. n - 1 with root 0. The parent of a number is the number without its
// lowest set bit. Setting one bit below the lowest set bit gives a child.
constexpr int tree_parent(int number) noexcept { return number & (number - 1); }
// Returns the bit of the first, largest child in a tree of n; halve it for the next ones. 0: no
// child.
constexpr int tree_first_bit(int number, int n) noexcept {
  const int below = number == 0 ? 1 << doublings(n) : number & -number;
  return below >> 1;
}

// Returns the peer of `rank` in round 0 .. n - 1 of an all-to-all. The relation is mutual. Each
// pair meets once, and each rank meets itself once.
constexpr int partner(int rank, int round, int n) noexcept { return wrap(round - rank, n); }

// The position of each rank's part of an array, in bytes. A value; see the factory functions for
// lifetimes.
class Parts {
 public:
  // All parts have `bytes` bytes.
  static constexpr Parts equal(std::size_t bytes) noexcept {
    Parts parts;
    parts.bytes_ = bytes;
    return parts;
  }
  // Cuts `count` elements of `element` bytes equally among n.
  static constexpr Parts split(std::size_t count, std::size_t element, int n) noexcept {
    Parts parts;
    parts.bytes_ = count;
    parts.element_ = element;
    parts.n_ = n;
    return parts;
  }
  // The parts of a v-form's call. The call's arrays must outlive them.
  static constexpr Parts listed(const engine::PartsView& view) noexcept {
    Parts parts;
    parts.view_ = view;
    return parts;
  }

  // Returns whether `equal` made them. Then they follow each other.
  constexpr bool are_equal() const noexcept { return view_.bytes == nullptr && n_ == 0; }
  constexpr Range of(int rank) const noexcept {
    const auto r = static_cast<std::size_t>(rank);
    if (view_.bytes != nullptr) return {view_.offsets[r], view_.bytes[r]};
    if (n_ == 0) return {r * bytes_, bytes_};
    const Range elements = even_part(bytes_, n_, rank);
    return {elements.first * element_, elements.length * element_};
  }

 private:
  engine::PartsView view_;  // listed
  std::size_t bytes_ = 0;   // equal: of a part; split: number of elements
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
