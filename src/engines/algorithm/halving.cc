#include "engines/algorithm/halving.h"

#include "engines/algorithm/cores.h"

namespace hocket::algorithm {

CoreLayout CoreLayout::of_ranks(std::span<const std::size_t> counts) {
  const int n = static_cast<int>(counts.size());
  CoreLayout layout;
  std::size_t end = 0;
  int rank = 0;
  for (int number = 0; number <= core_size(n); ++number) {
    for (; rank < core_first(number, n); ++rank) end += counts[static_cast<std::size_t>(rank)];
    layout.at_.push_back(end);
  }
  return layout;
}

CoreLayout CoreLayout::of_equal(std::size_t each, int n) {
  CoreLayout layout;
  layout.n_ = n;
  layout.count_ = each;
  return layout;
}

CoreLayout CoreLayout::even(std::size_t count, int n) {
  CoreLayout layout;
  layout.n_ = n;
  layout.is_even_ = true;
  layout.count_ = count;
  return layout;
}

std::size_t CoreLayout::at(int number) const noexcept {
  if (!at_.empty()) return at_[static_cast<std::size_t>(number)];
  if (is_even_) {
    const int core = core_size(n_);
    return number == core ? count_ : even_part(count_, core, number).first;
  }
  return static_cast<std::size_t>(core_first(number, n_)) * count_;
}

engine::Task fold_into_core(
    Endpoint at, Partial partial, std::byte* work, std::size_t count, std::byte* scratch) {
  const Endpoint partly = at.as(partial.dtype());
  const int companion = core_companion(at.rank(), at.size());
  if (companion < 0) co_return;
  const std::size_t bytes = count * partial.element();
  if (core_number(at.rank(), at.size()) < 0) {
    Message told = partly.send(companion, {work, bytes});
    co_await partly.completed(told);
    co_return;
  }
  Message heard = partly.recv(companion, {scratch, bytes});
  co_await partly.completed(heard);
  partial.fold(work, work, scratch, count);
}

engine::Task halve(Endpoint at,
                   Partial partial,
                   std::byte* work,
                   const CoreLayout& layout,
                   std::byte* scratch,
                   std::size_t chunk_bytes) {
  const Endpoint partly = at.as(partial.dtype());
  const std::size_t element = partial.element();
  const std::size_t chunk = whole_elements(chunk_bytes, element) / element;
  const int number = core_number(at.rank(), at.size());
  std::vector<Message> coming;
  std::vector<Message> going;
  for (int half = core_size(at.size()) / 2; half > 0; half /= 2) {
    const int ours = number & ~(half - 1);  // first number of the half that this rank keeps
    const int theirs = ours ^ half;
    const int peer = core_rank(number ^ half, at.size());
    const Range kept = layout.between(ours, ours + half);
    const Range given = layout.between(theirs, theirs + half);
    coming.clear();
    for (std::size_t i = 0; i < pieces(kept.length, chunk); ++i) {
      const Range range = piece({0, kept.length}, chunk, i);
      coming.push_back(
          partly.recv(peer, {scratch + range.first * element, range.length * element}));
    }
    for (std::size_t i = 0; i < pieces(given.length, chunk); ++i) {
      const Range range = piece(given, chunk, i);
      going.push_back(partly.send(peer, {work + range.first * element, range.length * element}));
    }
    for (std::size_t i = 0; i < coming.size(); ++i) {
      const Range range = piece({0, kept.length}, chunk, i);
      co_await partly.completed(coming[i]);
      std::byte* sum = work + (kept.first + range.first) * element;
      partial.fold(sum, sum, scratch + range.first * element, range.length);
    }
    co_await partly.completed(going);
  }
}

}  // namespace hocket::algorithm
