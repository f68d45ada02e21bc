#include "engines/algorithm/algorithms.h"

namespace hocket::algorithm {

// The root also takes part in the ring, although it receives only data that it already has. So all
// ranks run the same code. This costs no time, because the other ranks need the same rounds anyway.
engine::Task scatter_broadcast(Endpoint at, Whole array, int root) {
  const Parts parts = Parts::split(array.bytes / at.element(), at.element(), at.size());
  const Array out{array.out, parts};
  if (at.rank() == root) place({array.out, array.bytes}, {array.in, array.bytes});
  const ConstArray whole{array.out, parts};
  const std::span<std::byte> own = out.part(at.rank());
  co_await linear_scatter(at, whole, own, root);
  co_await ring_all_gather(at, own, out);
}

}  // namespace hocket::algorithm
