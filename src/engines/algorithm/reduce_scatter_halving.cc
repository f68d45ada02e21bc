#include "engines/algorithm/algorithms.h"
#include "engines/algorithm/cores.h"
#include "engines/algorithm/halving.h"
#include "engines/algorithm/scratch.h"

namespace hocket::algorithm {
namespace {

// The positions of all ranks' parts in the working array, in elements. The parts are adjacent
// there, in rank order. A value.
class PackedParts {
 public:
  PackedParts(const Parts& parts, std::size_t element, int n)
      : n_(n), each_(parts.of(0).length / element) {
    if (parts.are_equal()) {
      layout_ = CoreLayout::of_equal(each_, n);
      return;
    }
    std::vector<std::size_t> counts;
    std::size_t end = 0;
    starts_.push_back(end);
    for (int rank = 0; rank < n; ++rank) {
      counts.push_back(parts.of(rank).length / element);
      starts_.push_back(end += counts.back());
    }
    layout_ = CoreLayout::of_ranks(counts);
  }

  Range of(int rank) const noexcept {
    const auto r = static_cast<std::size_t>(rank);
    if (starts_.empty()) return {r * each_, each_};
    return {starts_[r], starts_[r + 1] - starts_[r]};
  }
  std::size_t total() const noexcept { return of(n_ - 1).end(); }
  const CoreLayout& layout() const noexcept { return layout_; }

 private:
  int n_;
  std::size_t each_;
  std::vector<std::size_t> starts_;  // empty if all parts have each_ elements
  CoreLayout layout_;
};

}  // namespace

engine::Task halving_reduce_scatter(Endpoint at,
                                    Reduction reduction,
                                    ConstArray in,
                                    std::byte* out) {
  const int n = at.size();
  const Partial partial(reduction);
  const Endpoint partly = at.as(partial.dtype());
  const PackedParts packed(in.parts, at.element(), n);
  const CoreLayout& layout = packed.layout();
  const std::size_t total = packed.total();
  const std::size_t bytes = total * partial.element();
  const Scratch memory(2 * bytes);
  std::byte* work = memory.get();
  std::byte* scratch = work + bytes;
  const auto part = [&](int rank) {
    const Range range = packed.of(rank);
    return std::span{work + range.first * partial.element(), range.length * partial.element()};
  };
  if (in.parts.are_equal()) {
    partial.load(work, in.data, total);
  } else {
    for (int rank = 0; rank < n; ++rank) {
      partial.load(part(rank).data(), in.data + in.parts.of(rank).first, packed.of(rank).length);
    }
  }
  co_await fold_into_core(at, partial, work, total, scratch);
  const int companion = core_companion(at.rank(), n);
  if (core_number(at.rank(), n) < 0) {
    Message heard = partly.recv(companion, part(at.rank()));
    co_await partly.completed(heard);
  } else {
    co_await halve(at, partial, work, layout, scratch, reduction.chunk_bytes);
    if (companion >= 0) {
      Message told = partly.send(companion, part(companion));
      co_await partly.completed(told);
    }
  }
  partial.finish(out, part(at.rank()).data(), packed.of(at.rank()).length);
}

}  // namespace hocket::algorithm
