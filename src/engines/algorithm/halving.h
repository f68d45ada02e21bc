// Steps that several algorithms share: reductions by recursive halving within a core of 2^k ranks;
// see cores.h.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/task.h"
#include "engines/algorithm/messages.h"
#include "engines/algorithm/partial.h"

namespace hocket::algorithm {

// The positions of the elements that belong to each core number, in an array of partial results.
// The parts of successive numbers are adjacent. A value.
class CoreLayout {
 public:
  // The layout of ranks with different numbers of elements. counts[i] is the elements of rank i.
  static CoreLayout of_ranks(std::span<const std::size_t> counts);
  // The layout of n ranks with `each` elements each.
  static CoreLayout of_equal(std::size_t each, int n);
  // Divides `count` elements equally among the core numbers of n ranks.
  static CoreLayout even(std::size_t count, int n);

  // Returns the elements of the core numbers [first, end).
  Range between(int first, int end) const noexcept {
    const std::size_t from = at(first);
    return {from, at(end) - from};
  }

 private:
  // Returns the position of a core number's first element. Returns the end of the array for the
  // number after the last one.
  std::size_t at(int number) const noexcept;

  int n_ = 1;
  bool is_even_ = false;
  std::size_t count_ = 0;        // even: elements of all ranks; of_equal: elements of one rank
  std::vector<std::size_t> at_;  // of_ranks: positions by core number; empty in other layouts
};

// Each excess rank sends its `count` partial results in `work` to its representative. The
// representative adds them to its own partial results in `work`. `scratch` has space for `count`
// partial results.
engine::Task fold_into_core(
    Endpoint at, Partial partial, std::byte* work, std::size_t count, std::byte* scratch);

// Reduces within the core by recursive halving. Only ranks in the core call it. Afterwards `work`
// holds the complete results of this rank's core number. `scratch` has the size of `work`. Messages
// are divided into chunks, so that a rank adds one chunk while the next one arrives.
engine::Task halve(Endpoint at,
                   Partial partial,
                   std::byte* work,
                   const CoreLayout& layout,
                   std::byte* scratch,
                   std::size_t chunk_bytes);

}  // namespace hocket::algorithm
