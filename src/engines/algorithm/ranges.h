// Index arithmetic: who talks to whom, and which part of an array is whose. Pure functions; ranks
// are in [0, n), n is at least 1, and nothing has to divide anything.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

#include "engine/call.h"

namespace hocket::algorithm {

// [first, first + length), in whatever unit its maker says. A value.
struct Range {
  std::size_t first = 0;
  std::size_t length = 0;

  constexpr std::size_t end() const noexcept { return first + length; }
  bool operator==(const Range&) const = default;
};

// Part `index` of `count` things cut into `parts`, consecutive, whose lengths differ by at most
// one: the first count % parts of them have one more.
constexpr Range even_part(std::size_t count, int parts, int index) noexcept {
  const auto n = static_cast<std::size_t>(parts);
  const auto i = static_cast<std::size_t>(index);
  const std::size_t least = count / n;
  const std::size_t longer = count % n;
  return {i * least + std::min(i, longer), least + (i < longer ? 1 : 0)};
}

// How many pieces of `size` (the last one perhaps shorter) `count` things make; none where there is
// nothing.
constexpr std::size_t pieces(std::size_t count, std::size_t size) noexcept {
  return count / size + (count % size != 0 ? 1 : 0);
}

// Piece `index` of `whole`; empty, at its end, from pieces(whole.length, size) on.
constexpr Range piece(Range whole, std::size_t size, std::size_t index) noexcept {
  const std::size_t count = pieces(whole.length, size);
  const std::size_t first = index < count ? index * size : whole.length;
  return {whole.first + first, std::min(size, whole.length - first)};
}

// Peers with which a rank has messages under way at once, where there are as many messages as
// ranks: what a rank needs for them must not grow without end.
inline constexpr int kMostPeersAtOnce = 64;

// Messages for a part that is sent in pieces: a part of nothing is said as well, so that the two
// sides always compare lengths.
constexpr std::size_t messages_for(std::size_t count, std::size_t size) noexcept {
  return std::max<std::size_t>(1, pieces(count, size));
}

// At most `bytes`, but whole elements, and whole cache lines where there is room for one: at least
// one element.
constexpr std::size_t whole_elements(std::size_t bytes, std::size_t element) noexcept {
  const std::size_t unit = bytes >= 64 ? std::max<std::size_t>(64, element) : element;
  return std::max(bytes / unit * unit, element);
}

// Bytes of a round with each of so many peers at once, two rounds of which are under way: as many
// as `scratch` has room for, but where that were very short messages, twice as many.
constexpr std::size_t lane_bytes(std::size_t scratch, std::size_t peers) noexcept {
  constexpr std::size_t kShort = 64 * 1024;
  const std::size_t one = scratch / peers;
  return std::max(one / 2, std::min(one, kShort));
}

// `rank` modulo n, for ranks from -n up.
constexpr int wrap(int rank, int n) noexcept { return (rank + n) % n; }

// The least k with 2^k >= n: rounds of everything that doubles what it has.
constexpr int doublings(int n) noexcept { return std::bit_width(static_cast<unsigned>(n) - 1); }

// The binomial tree over 0 .. n - 1 with its root at 0: the parent of a number is the number
// without its lowest bit; its children are what one gets by setting a bit below that.
constexpr int tree_parent(int number) noexcept { return number & (number - 1); }
// The bit of the first, largest child that a tree of n can have; halve it for the next ones. 0: no
// child.
constexpr int tree_first_bit(int number, int n) noexcept {
  const int below = number == 0 ? 1 << doublings(n) : number & -number;
  return below >> 1;
}

// Whom `rank` meets in round 0 .. n - 1 of an all-to-all: meetings are mutual, each pair meets
// once, and each rank meets itself once.
constexpr int partner(int rank, int round, int n) noexcept { return wrap(round - rank, n); }

// Where each rank's part of an array lies, in bytes. A value; see the makers for lifetimes.
class Parts {
 public:
  // Every rank has as many.
  static constexpr Parts equal(std::size_t bytes) noexcept {
    Parts parts;
    parts.bytes_ = bytes;
    return parts;
  }
  // `count` elements of `element` bytes, cut evenly among n.
  static constexpr Parts split(std::size_t count, std::size_t element, int n) noexcept {
    Parts parts;
    parts.bytes_ = count;
    parts.element_ = element;
    parts.n_ = n;
    return parts;
  }
  // As a v-form's call says; the call's arrays must outlive the parts.
  static constexpr Parts listed(const engine::PartsView& view) noexcept {
    Parts parts;
    parts.view_ = view;
    return parts;
  }

  // Whether they were made by `equal`: then they lie one after the other.
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
  std::size_t bytes_ = 0;   // equal: of a part; split: elements of the whole
  std::size_t element_ = 1;
  int n_ = 0;  // split: into how many; else 0
};

// Bytes of the longest part.
constexpr std::size_t longest(const Parts& parts, int n) noexcept {
  if (parts.are_equal()) return parts.of(0).length;
  std::size_t most = 0;
  for (int i = 0; i < n; ++i) most = std::max(most, parts.of(i).length);
  return most;
}

}  // namespace hocket::algorithm
