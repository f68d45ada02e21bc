#include <algorithm>

#include "algorithm/algorithms.h"
#include "algorithm/scratch.h"

namespace hocket::algorithm {

// Result piece k is written once everybody has piece k of every part: where `out` is the front of
// `in`, that is what it overwrites.
engine::Task pairwise_reduce_scatter(Endpoint at,
                                     Reduction reduction,
                                     ConstArray in,
                                     std::byte* out) {
  const int n = at.size();
  const Range own = in.parts.of(at.rank());
  const auto peers = static_cast<std::size_t>(std::max(1, n - 1));
  const std::size_t lane = whole_elements(reduction.scratch_bytes / peers, at.element());
  const std::size_t rounds = pieces(longest(in.parts, n), lane);
  const std::size_t lane_bytes = std::min(lane, own.length);
  const Scratch lanes(peers * lane_bytes);
  std::vector<const void*> sources(static_cast<std::size_t>(n));
  std::vector<Message> under_way;

  for (std::size_t round = 0; round < rounds; ++round) {
    const Range mine = piece(own, lane, round);
    for (int first = 1; first < n; first += kMostPeersAtOnce) {
      const int end = std::min(first + kMostPeersAtOnce, n);
      for (int i = first; mine.length > 0 && i < end; ++i) {
        std::byte* theirs = lanes.get() + static_cast<std::size_t>(i - 1) * lane_bytes;
        sources[static_cast<std::size_t>(at.behind(i))] = theirs;
        under_way.push_back(at.recv(at.behind(i), {theirs, mine.length}));
      }
      for (int i = first; i < end; ++i) {
        const Range theirs = piece(in.parts.of(at.ahead(i)), lane, round);
        if (theirs.length == 0) continue;
        under_way.push_back(at.send(at.ahead(i), {in.data + theirs.first, theirs.length}));
      }
      co_await at.completed(under_way);
    }
    if (mine.length == 0) continue;
    sources[static_cast<std::size_t>(at.rank())] = in.data + mine.first;
    reduction(out + (mine.first - own.first), sources, mine.length);
  }
}

}  // namespace hocket::algorithm
