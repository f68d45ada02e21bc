#include <algorithm>

#include "engines/algorithm/algorithms.h"

namespace hocket::algorithm {

// Each rank begins with a different peer, so that the ranks do not all send to the same rank at the
// same time.
engine::Task direct_all_gather(Endpoint at, std::span<const std::byte> own, Array out) {
  place(out.part(at.rank()), own);
  const std::span<const std::byte> sent = out.part(at.rank());
  std::vector<Message> under_way;
  for (int first = 1; first < at.size(); first += kMostPeersAtOnce) {
    const int end = std::min(first + kMostPeersAtOnce, at.size());
    for (int i = first; i < end; ++i) {
      under_way.push_back(at.recv(at.behind(i), out.part(at.behind(i))));
    }
    for (int i = first; i < end; ++i) under_way.push_back(at.send(at.ahead(i), sent));
    co_await at.completed(under_way);
  }
}

}  // namespace hocket::algorithm
