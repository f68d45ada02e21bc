#include "engines/algorithm/algorithms.h"
#include "engines/algorithm/scratch.h"

namespace hocket::algorithm {

// Block i must move i ranks ahead. In the round of a bit, all blocks whose number i has this bit
// set move ahead by the value of the bit. A block has arrived when it has moved by all bits of i.
engine::Task bruck_all_to_all(Endpoint at, const std::byte* in, std::byte* out, std::size_t share) {
  const auto n = static_cast<std::size_t>(at.size());
  const Scratch memory(2 * n * share);
  std::byte* blocks = memory.get();
  std::byte* leaving = blocks + n * share;  // at most floor(n / 2) blocks
  std::byte* arriving = leaving + n / 2 * share;
  const auto block = [&](std::size_t i) { return std::span{blocks + i * share, share}; };
  for (std::size_t i = 0; i < n; ++i) {
    const auto to = static_cast<std::size_t>(at.ahead(static_cast<int>(i)));
    place(block(i), {in + to * share, share});
  }
  for (std::size_t bit = 1; bit < n; bit *= 2) {
    std::size_t moving = 0;
    for (std::size_t i = bit; i < n; ++i) {
      if ((i & bit) != 0) place({leaving + moving++ * share, share}, block(i));
    }
    Message received = at.recv(at.behind(static_cast<int>(bit)), {arriving, moving * share});
    Message sent = at.send(at.ahead(static_cast<int>(bit)), {leaving, moving * share});
    co_await at.completed(received, sent);
    moving = 0;
    for (std::size_t i = bit; i < n; ++i) {
      if ((i & bit) != 0) place(block(i), {arriving + moving++ * share, share});
    }
  }
  for (std::size_t i = 0; i < n; ++i) {
    const auto from = static_cast<std::size_t>(at.behind(static_cast<int>(i)));
    place({out + from * share, share}, block(i));
  }
}

}  // namespace hocket::algorithm
