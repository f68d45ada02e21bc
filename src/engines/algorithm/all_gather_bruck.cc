#include <algorithm>

#include "engines/algorithm/algorithms.h"
#include "engines/algorithm/scratch.h"

namespace hocket::algorithm {

engine::Task bruck_all_gather(Endpoint at, std::byte* blocks, std::size_t share) {
  for (int have = 1; have < at.size(); have *= 2) {
    const auto moving = static_cast<std::size_t>(std::min(have, at.size() - have)) * share;
    Message in = at.recv(at.ahead(have), {blocks + static_cast<std::size_t>(have) * share, moving});
    Message out = at.send(at.behind(have), {blocks, moving});
    co_await at.completed(in, out);
  }
}

engine::Task ordered_bruck_all_gather(Endpoint at, std::span<const std::byte> own, std::byte* out) {
  const std::size_t share = own.size();
  const auto n = static_cast<std::size_t>(at.size());
  const Scratch blocks(n * share);
  place({blocks.get(), share}, own);
  co_await bruck_all_gather(at, blocks.get(), share);
  // The blocks [0, n - rank) belong to the ranks [rank, n), the other blocks to the ranks [0,
  // rank).
  const std::size_t before = static_cast<std::size_t>(at.rank()) * share;
  const std::size_t after = n * share - before;
  place({out + before, after}, {blocks.get(), after});
  place({out, before}, {blocks.get() + after, before});
}

}  // namespace hocket::algorithm
