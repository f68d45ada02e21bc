#include "engines/algorithm/algorithms.h"
#include "engines/algorithm/scratch.h"

namespace hocket::algorithm {

engine::Task gathered_reduce(Endpoint at, Reduction reduction, Whole array, int root) {
  const bool is_root = at.rank() == root;
  const auto n = static_cast<std::size_t>(at.size());
  const Scratch memory(is_root ? n * array.bytes : 0);
  const Array all{memory.get(), Parts::equal(array.bytes)};
  const std::span<const std::byte> own{array.in, array.bytes};
  co_await linear_gather(at, own, all, root);
  if (!is_root) co_return;
  std::vector<const void*> sources(n);
  for (int i = 0; i < at.size(); ++i) sources[static_cast<std::size_t>(i)] = all.part(i).data();
  reduction(array.out, sources, array.bytes);
}

}  // namespace hocket::algorithm
