// What algorithms share that add up by the bits of the ranks' numbers; see cores.h.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/task.h"
#include "engines/algorithm/messages.h"
#include "engines/algorithm/partial.h"

namespace hocket::algorithm {

// Where the core's numbers have their elements in an array of partial results whose parts lie one
// after the other. A value.
class CoreLayout {
 public:
  // `counts`: elements of each rank.
  static CoreLayout of_ranks(std::span<const std::size_t> counts);
  // Of n ranks that have `each`.
  static CoreLayout of_equal(std::size_t each, int n);
  // An even cut of `count` elements among the core's numbers.
  static CoreLayout even(std::size_t count, int n);

  // Those of the numbers [first, end).
  Range between(int first, int end) const noexcept {
    const std::size_t from = at(first);
    return {from, at(end) - from};
  }

 private:
  // Where those of `number` begin; of the one after the last: where all end.
  std::size_t at(int number) const noexcept;

  int n_ = 1;
  bool is_even_ = false;
  std::size_t count_ = 0;        // even: of all; equal: of a rank
  std::vector<std::size_t> at_;  // else empty
};

// Ranks outside the core send `work`, `count` partial results, to those who speak for them, who add
// them to theirs. `scratch` has room for as many.
engine::Task fold_into_core(
    Endpoint at, Partial partial, std::byte* work, std::size_t count, std::byte* scratch);

// In the core alone: afterwards `work` holds the complete results of this rank's number. `scratch`
// has room for as much as `work`; messages are cut into chunks, so that one is added while the next
// one comes.
engine::Task halve(Endpoint at,
                   Partial partial,
                   std::byte* work,
                   const CoreLayout& layout,
                   std::byte* scratch,
                   std::size_t chunk_bytes);

}  // namespace hocket::algorithm
