#include "engines/algorithm/algorithms.h"
#include "engines/algorithm/scratch.h"

namespace hocket::algorithm {

// The reverse of binomial_gather: the root rotates the parts, and each number sends to each child
// the parts of the child's subtree.
engine::Task binomial_scatter(Endpoint at,
                              const std::byte* in,
                              std::span<std::byte> own,
                              int root) {
  const int n = at.size();
  const int number = wrap(at.rank() - root, n);
  const std::size_t share = own.size();
  const auto parts = static_cast<std::size_t>(binomial_subtree(number, n));
  const bool direct = number == 0 && root == 0;
  const bool leaf = parts == 1 && number != 0;
  const Scratch memory(direct || leaf ? 0 : parts * share);
  const std::byte* held = direct ? in : leaf ? own.data() : memory.get();
  if (number != 0) {
    std::byte* into = leaf ? own.data() : memory.get();
    Message heard = at.recv(wrap(tree_parent(number) + root, n), {into, parts * share});
    co_await at.completed(heard);
  } else if (!direct) {
    const std::size_t before = static_cast<std::size_t>(root) * share;
    const std::size_t after = parts * share - before;
    place({memory.get(), after}, {in + before, after});
    place({memory.get() + after, before}, {in, before});
  }
  std::vector<Message> going;
  for (int bit = tree_first_bit(number, n); bit > 0; bit /= 2) {
    const int child = number + bit;
    if (child >= n) continue;
    const auto theirs = static_cast<std::size_t>(binomial_subtree(child, n)) * share;
    going.push_back(
        at.send(wrap(child + root, n), {held + static_cast<std::size_t>(bit) * share, theirs}));
  }
  place(own, {held, share});
  co_await at.completed(going);
}

}  // namespace hocket::algorithm
