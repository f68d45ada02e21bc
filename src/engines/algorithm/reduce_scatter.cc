#include <algorithm>

#include "engines/algorithm/algorithms.h"
#include "engines/algorithm/scratch.h"

namespace hocket::algorithm {

// Works in rounds, each of which handles a piece of every part. A rank posts the messages of a
// round before it awaits the previous round, so that messages are always in flight. The scratch
// memory fits into the caches. A rank writes piece k of its result when its messages of round k are
// complete. So `out` may be the front of `in`: piece k overwrites only data that has been sent.
engine::Task pairwise_reduce_scatter(Endpoint at,
                                     Reduction reduction,
                                     ConstArray in,
                                     std::byte* out) {
  const int n = at.size();
  const Range own = in.parts.of(at.rank());
  const auto peers = static_cast<std::size_t>(std::max(1, n - 1));
  const std::size_t lane = whole_elements(lane_bytes(reduction.scratch_bytes, peers), at.element());
  const std::size_t rounds = pieces(longest(in.parts, n), lane);
  const std::size_t room = std::min(lane, own.length);
  const std::size_t sets = rounds > 1 ? 2 : 1;
  const Scratch lanes(sets * peers * room);
  const auto received = [&](std::size_t round, int behind) {
    return lanes.get() + (round % sets * peers + static_cast<std::size_t>(behind - 1)) * room;
  };
  // If there are many peers, a round consists of several turns, each with some of the peers. A step
  // is one turn of one round. Two steps are in progress at the same time.
  constexpr std::size_t kPeers = kMostPeersAtOnce / 2;
  const std::size_t turns = pieces(peers, kPeers);
  std::vector<Message> under_way[2];
  const auto post = [&](std::size_t step) {
    const std::size_t round = step / turns;
    const Range mine = piece(own, lane, round);
    const Range turn = piece({1, static_cast<std::size_t>(n - 1)}, kPeers, step % turns);
    for (auto i = static_cast<int>(turn.first); i < static_cast<int>(turn.end()); ++i) {
      if (mine.length == 0) break;
      under_way[step % 2].push_back(at.recv(at.behind(i), {received(round, i), mine.length}));
    }
    for (auto i = static_cast<int>(turn.first); i < static_cast<int>(turn.end()); ++i) {
      const Range theirs = piece(in.parts.of(at.ahead(i)), lane, round);
      if (theirs.length == 0) continue;
      under_way[step % 2].push_back(at.send(at.ahead(i), {in.data + theirs.first, theirs.length}));
    }
  };

  std::vector<const void*> sources(static_cast<std::size_t>(n));
  const std::size_t steps = rounds * turns;
  if (steps > 0) post(0);
  for (std::size_t step = 0; step < steps; ++step) {
    if (step + 1 < steps) post(step + 1);
    co_await at.completed(under_way[step % 2]);
    const std::size_t round = step / turns;
    const Range mine = piece(own, lane, round);
    if ((step + 1) % turns != 0 || mine.length == 0) continue;
    for (int i = 1; i < n; ++i) {
      sources[static_cast<std::size_t>(at.behind(i))] = received(round, i);
    }
    sources[static_cast<std::size_t>(at.rank())] = in.data + mine.first;
    reduction(out + (mine.first - own.first), sources, mine.length);
  }
}

}  // namespace hocket::algorithm
