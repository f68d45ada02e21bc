#include <algorithm>

#include "engines/algorithm/algorithms.h"
#include "engines/algorithm/cores.h"
#include "engines/algorithm/halving.h"
#include "engines/algorithm/scratch.h"

namespace hocket::algorithm {
namespace {

std::span<std::byte> bytes_between(
    const Whole& array, const CoreLayout& layout, std::size_t element, int first, int end) {
  const Range range = layout.between(first, end);
  return {array.out + range.first * element, range.length * element};
}

// Gathers the complete results of all core numbers on all ranks of the core, by recursive doubling.
engine::Task double_up(Endpoint at, Whole array, const CoreLayout& layout) {
  const int n = at.size();
  const int number = core_number(at.rank(), n);
  for (int have = 1; have < core_size(n); have *= 2) {
    const int ours = number & ~(have - 1);
    const int theirs = ours ^ have;
    const int peer = core_rank(number ^ have, n);
    Message in = at.recv(peer, bytes_between(array, layout, at.element(), theirs, theirs + have));
    Message sent = at.send(peer, bytes_between(array, layout, at.element(), ours, ours + have));
    co_await at.completed(in, sent);
  }
}

// Returns the number of elements in a stretch. Arrays are processed in stretches, because scratch
// memory of limited size is reused, which costs much less than new memory.
std::size_t stretch_of(const Reduction& reduction, const Partial& partial) noexcept {
  return whole_elements(4 * reduction.scratch_bytes, partial.element()) / partial.element();
}

// Reduces one stretch of the array. `work` and `scratch` each have space for its partial results.
engine::Task all_reduce_stretch(Endpoint at,
                                Reduction reduction,
                                Partial partial,
                                Whole array,
                                std::byte* work,
                                std::byte* scratch) {
  const int n = at.size();
  const std::size_t count = array.bytes / at.element();
  const CoreLayout layout = CoreLayout::even(count, n);
  if (partial.is_plain()) work = array.out;
  partial.load(work, array.in, count);
  co_await fold_into_core(at, partial, work, count, scratch);
  const int number = core_number(at.rank(), n);
  const int companion = core_companion(at.rank(), n);
  if (number < 0) {
    Message heard = at.recv(companion, {array.out, array.bytes});
    co_await at.completed(heard);
    co_return;
  }
  co_await halve(at, partial, work, layout, scratch, reduction.chunk_bytes);
  const Range own = layout.between(number, number + 1);
  partial.finish(
      array.out + own.first * at.element(), work + own.first * partial.element(), own.length);
  co_await double_up(at, array, layout);
  if (companion >= 0) {
    Message told = at.send(companion, {array.out, array.bytes});
    co_await at.completed(told);
  }
}

}  // namespace

engine::Task rabenseifner_all_reduce(Endpoint at, Reduction reduction, Whole array) {
  const Partial partial(reduction);
  const std::size_t count = array.bytes / at.element();
  const std::size_t stretch = stretch_of(reduction, partial);
  const std::size_t room = std::min(count, stretch) * partial.element();
  const Scratch work(partial.is_plain() ? 0 : room);
  const Scratch scratch(room);
  for (std::size_t i = 0; i < messages_for(count, stretch); ++i) {
    const Range range = piece({0, count}, stretch, i);
    const std::size_t first = range.first * at.element();
    const Whole part{array.in + first, array.out + first, range.length * at.element()};
    co_await all_reduce_stretch(at, reduction, partial, part, work.get(), scratch.get());
  }
}

// After the halving, each rank of the core sends its results to the root, which may be an excess
// rank.
engine::Task rabenseifner_reduce(Endpoint at, Reduction reduction, Whole array, int root) {
  const int n = at.size();
  const Partial partial(reduction);
  const std::size_t count = array.bytes / at.element();
  const std::size_t bytes = count * partial.element();
  const CoreLayout layout = CoreLayout::even(count, n);
  const bool is_root = at.rank() == root;
  const Scratch memory(2 * bytes);
  std::byte* work = memory.get();
  std::byte* scratch = work + bytes;
  partial.load(work, array.in, count);
  co_await fold_into_core(at, partial, work, count, scratch);
  const int number = core_number(at.rank(), n);
  if (number >= 0) co_await halve(at, partial, work, layout, scratch, reduction.chunk_bytes);
  std::vector<Message> under_way;
  for (int other = 0; is_root && other < core_size(n); ++other) {
    const std::span<std::byte> theirs =
        bytes_between(array, layout, at.element(), other, other + 1);
    if (other != number) under_way.push_back(at.recv(core_rank(other, n), theirs));
  }
  if (number >= 0) {
    const Range own = layout.between(number, number + 1);
    std::byte* result = is_root ? array.out + own.first * at.element() : scratch;
    partial.finish(result, work + own.first * partial.element(), own.length);
    if (!is_root) under_way.push_back(at.send(root, {result, own.length * at.element()}));
  }
  co_await at.completed(under_way);
}

}  // namespace hocket::algorithm
