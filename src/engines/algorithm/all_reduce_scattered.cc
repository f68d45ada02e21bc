#include "engines/algorithm/algorithms.h"

namespace hocket::algorithm {

engine::Task scattered_all_reduce(Endpoint at, Reduction reduction, Whole array) {
  const Parts parts = Parts::split(array.bytes / at.element(), at.element(), at.size());
  const ConstArray in{array.in, parts};
  const Array out{array.out, parts};
  const std::span<std::byte> own = out.part(at.rank());
  co_await pairwise_reduce_scatter(at, reduction, in, own.data());
  co_await ring_all_gather(at, own, out);
}

}  // namespace hocket::algorithm
