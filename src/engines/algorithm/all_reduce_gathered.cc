#include "engines/algorithm/algorithms.h"
#include "engines/algorithm/scratch.h"

namespace hocket::algorithm {

engine::Task gathered_all_reduce(Endpoint at, Reduction reduction, Whole array) {
  const auto n = static_cast<std::size_t>(at.size());
  const Scratch blocks(n * array.bytes);
  place({blocks.get(), array.bytes}, {array.in, array.bytes});
  co_await bruck_all_gather(at, blocks.get(), array.bytes);
  std::vector<const void*> sources(n);
  for (int i = 0; i < at.size(); ++i) {
    sources[static_cast<std::size_t>(at.ahead(i))] =
        blocks.get() + static_cast<std::size_t>(i) * array.bytes;
  }
  reduction(array.out, sources, array.bytes);
}

}  // namespace hocket::algorithm
