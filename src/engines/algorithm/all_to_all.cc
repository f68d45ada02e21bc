#include "engines/algorithm/algorithms.h"

namespace hocket::algorithm {

// A peer may work in place, and this rank does not know it. So this rank divides parts into the
// same pieces as the in-place algorithm.
engine::Task pairwise_all_to_all(Endpoint at, ConstArray in, Array out, std::size_t scratch_bytes) {
  const std::size_t size = whole_elements(scratch_bytes, at.element());
  place(out.part(at.rank()), in.part(at.rank()));
  std::vector<Message> under_way;
  for (int round = 0; round < rounds_of(at.size()); ++round) {
    const int peer = partner(at.rank(), round, at.size());
    if (peer == at.rank()) continue;
    const std::span<std::byte> theirs = out.part(peer);
    const std::span<const std::byte> ours = in.part(peer);
    for (std::size_t i = 0; i < messages_for(theirs.size(), size); ++i) {
      const Range range = piece({0, theirs.size()}, size, i);
      under_way.push_back(at.recv(peer, theirs.subspan(range.first, range.length)));
    }
    for (std::size_t i = 0; i < messages_for(ours.size(), size); ++i) {
      const Range range = piece({0, ours.size()}, size, i);
      under_way.push_back(at.send(peer, ours.subspan(range.first, range.length)));
    }
    co_await at.completed(under_way);
  }
}

}  // namespace hocket::algorithm
