// Trees over the ranks. Broadcasts go down a tree, reductions go up. Pure functions.
//
// The nodes of a tree are *numbers*: ranks counted from the root, which is number 0.
#pragma once

#include <cstdint>
#include <vector>

#include "engines/algorithm/ranges.h"

namespace hocket::algorithm {

enum class TreeShape : std::uint8_t {
  kBinomial,  // the parent of v is v without its lowest set bit; few rounds reach all ranks
  kBinary,    // the children of v are 2v + 1 and 2v + 2; a rank sends to at most two ranks
  kChain,     // the child of v is v + 1; a rank sends to at most one rank
};

// The parent and children of a number. Children are in the order in which a broadcast sends to
// them: the child with the deepest subtree comes first. A value.
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

// Returns the number of edges from the root to the deepest number in a tree of n numbers.
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

// Returns the size of a number's subtree in the binomial tree of n numbers, including the number
// itself. The subtree of v has the numbers from v to v + size - 1.
constexpr int binomial_subtree(int number, int n) noexcept {
  const int most = number == 0 ? n : number & -number;
  return std::min(most, n - number);
}

}  // namespace hocket::algorithm
