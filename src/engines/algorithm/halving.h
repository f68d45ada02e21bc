// Steps of algorithms that reduce by the bits of the ranks' numbers; see cores.h.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/task.h"
#include "engines/algorithm/messages.h"
#include "engines/algorithm/partial.h"

namespace hocket::algorithm {

// The positions of the core numbers' elements in an array of partial results whose parts follow
// each other. A value.
class CoreLayout {
 public:
  // `counts` has the elements of each rank.
  static CoreLayout of_ranks(std::span<const std::size_t> counts);
  // Makes the layout of n ranks with `each` elements.
  static CoreLayout of_equal(std::size_t each, int n);
  // Cuts `count` elements equally among the core numbers.
  static CoreLayout even(std::size_t count, int n);

  // Returns the elements of the core numbers [first, end).
  Range between(int first, int end) const noexcept {
    const std::size_t from = at(first);
    return {from, at(end) - from};
  }

 private:
  // Returns the position of a core number's elements. For the number after the last one, it is the
  // end.
  std::size_t at(int number) const noexcept;

  int n_ = 1;
  bool is_even_ = false;
  std::size_t count_ = 0;        // even: of all ranks; equal: of one rank
  std::vector<std::size_t> at_;  // empty for the other two layouts
};

// Ranks outside the core send `work`, `count` partial results, to their representatives, which add
// them to their own. `scratch` has space for as many.
engine::Task fold_into_core(
    Endpoint at, Partial partial, std::byte* work, std::size_t count, std::byte* scratch);

// Reduces within the core. Afterwards `work` has the complete results of this rank's number.
// `scratch` has the size of `work`. Messages are cut into chunks, so that one chunk is added while
// the next one arrives.
engine::Task halve(Endpoint at,
                   Partial partial,
                   std::byte* work,
                   const CoreLayout& layout,
                   std::byte* scratch,
                   std::size_t chunk_bytes);

}  // namespace hocket::algorithm
