#include <algorithm>

#include "engines/algorithm/algorithms.h"
#include "engines/algorithm/scratch.h"

namespace hocket::algorithm {

engine::Task scattered_reduce(Endpoint at, Reduction reduction, Whole array, int root) {
  const bool is_root = at.rank() == root;
  const std::size_t stretch = whole_elements(reduction.scratch_bytes, at.element());
  const Parts longest_parts =
      Parts::split(std::min(stretch, array.bytes) / at.element(), at.element(), at.size());
  const Scratch memory(is_root ? 0 : longest_parts.of(at.rank()).length);
  for (std::size_t i = 0; i < pieces(array.bytes, stretch); ++i) {
    const Range range = piece({0, array.bytes}, stretch, i);
    const Parts parts = Parts::split(range.length / at.element(), at.element(), at.size());
    const ConstArray in{array.in + range.first, parts};
    const Array out{is_root ? array.out + range.first : nullptr, parts};
    const std::span<std::byte> own =
        is_root ? out.part(root) : std::span{memory.get(), parts.of(at.rank()).length};
    co_await pairwise_reduce_scatter(at, reduction, in, own.data());
    co_await linear_gather(at, own, out, root);
  }
}

}  // namespace hocket::algorithm
