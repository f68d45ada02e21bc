
#include "algorithm/algorithms.h"
#include "algorithm/cores.h"
#include "algorithm/halving.h"
#include "algorithm/scratch.h"

namespace hocket::algorithm {

engine::Task halving_reduce_scatter(Endpoint at,
                                    Reduction reduction,
                                    ConstArray in,
                                    std::byte* out) {
  const int n = at.size();
  const Partial partial(reduction);
  const Endpoint partly = at.as(partial.dtype());
  std::vector<std::size_t> counts;
  std::vector<std::size_t> starts;
  std::size_t total = 0;
  for (int rank = 0; rank < n; ++rank) {
    starts.push_back(total);
    counts.push_back(in.parts.of(rank).length / at.element());
    total += counts.back();
  }
  const CoreLayout layout = CoreLayout::of_ranks(counts);
  const std::size_t bytes = total * partial.element();
  const Scratch memory(2 * bytes);
  std::byte* work = memory.get();
  std::byte* scratch = work + bytes;
  const auto part = [&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    return std::span{work + starts[r] * partial.element(), counts[r] * partial.element()};
  };
  for (int rank = 0; rank < n; ++rank) {
    partial.load(part(rank).data(),
                 in.data + in.parts.of(rank).first,
                 counts[static_cast<std::size_t>(rank)]);
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
  partial.finish(out, part(at.rank()).data(), counts[static_cast<std::size_t>(at.rank())]);
}

}  // namespace hocket::algorithm
