// What algorithms share that add up by the bits of the ranks' numbers; see cores.h.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "algorithm/messages.h"
#include "algorithm/partial.h"
#include "engine/task.h"

namespace hocket::algorithm {

// Where the core's numbers have their elements in an array of partial results whose parts lie one
// after the other: number k those from `at[k]` to `at[k + 1]`. A value.
struct CoreLayout {
  std::vector<std::size_t> at;

  // `counts`: elements of each rank.
  static CoreLayout of_ranks(std::span<const std::size_t> counts);
  // An even cut of `count` elements among the core's numbers.
  static CoreLayout even(std::size_t count, int n);

  Range between(int first, int end) const noexcept {
    const auto from = at[static_cast<std::size_t>(first)];
    return {from, at[static_cast<std::size_t>(end)] - from};
  }
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
