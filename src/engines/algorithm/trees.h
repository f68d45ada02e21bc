// Trees over the ranks, for broadcasts downwards and reductions upwards. Pure functions.
//
// Numbers are ranks counted from the root: number 0 is the root.
#pragma once

#include <cstdint>
#include <vector>

#include "engines/algorithm/ranges.h"

namespace hocket::algorithm {

enum class TreeShape : std::uint8_t {
  kBinomial,  // the parent of v is v without its lowest set bit: few rounds reach all
  kBinary,    // the children of v are 2v + 1 and 2v + 2: no rank sends to more than two
  kChain,     // each number's child is the next one: no rank sends to more than one
};

// A number's place in a tree of n. Children are in the order of service: the one with the deepest
// subtree first. A value.
struct TreePlace {
  int parent = -1;  // -1: the root
  std::vector<int> children;
};

inline TreePlace tree_place(TreeShape shape, int number, int n) {
  TreePlace place;
  switch (shape) {
    case TreeShape::kBinomial:
      if (number > 0) place.parent = tree_parent(number);
      for (int bit = tree_first_bit(number, n); bit > 0; bit /= 2) {
        if (number + bit < n) place.children.push_back(number + bit);
      }
      break;
    case TreeShape::kBinary:
      if (number > 0) place.parent = (number - 1) / 2;
      for (int child = 2 * number + 1; child <= 2 * number + 2 && child < n; ++child) {
        place.children.push_back(child);
      }
      break;
    case TreeShape::kChain:
      place.parent = number - 1;
      if (number + 1 < n) place.children.push_back(number + 1);
      break;
  }
  return place;
}

// Returns the distance from the root to the furthest number.
constexpr int tree_depth(TreeShape shape, int n) noexcept {
  switch (shape) {
    case TreeShape::kBinomial:
      return doublings(n);
    case TreeShape::kBinary:
      return static_cast<int>(std::bit_width(static_cast<unsigned>(n))) - 1;
    case TreeShape::kChain:
      return n - 1;
  }
  return 0;
}

// Returns the size of a number's subtree in the binomial tree of n, itself included. Its members
// follow the number.
constexpr int binomial_subtree(int number, int n) noexcept {
  const int most = number == 0 ? n : number & -number;
  return std::min(most, n - number);
}

}  // namespace hocket::algorithm
