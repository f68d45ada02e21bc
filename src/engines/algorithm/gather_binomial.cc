#include "engines/algorithm/algorithms.h"
#include "engines/algorithm/scratch.h"

namespace hocket::algorithm {

// Numbers are ranks counted from the root, which is number 0. Number v collects its own part and
// the parts of its subtree, whose numbers follow v. At the end the root rotates the collected parts
// into rank order if the root is not rank 0.
engine::Task binomial_gather(Endpoint at,
                             std::span<const std::byte> own,
                             std::byte* out,
                             int root) {
  const int n = at.size();
  const int number = wrap(at.rank() - root, n);
  const std::size_t share = own.size();
  const auto parts = static_cast<std::size_t>(binomial_subtree(number, n));
  const bool direct = number == 0 && root == 0;
  const bool leaf = parts == 1 && number != 0;
  const Scratch memory(direct || leaf ? 0 : parts * share);
  std::byte* collected = direct ? out : memory.get();
  std::vector<Message> coming;
  for (int bit = tree_first_bit(number, n); bit > 0; bit /= 2) {
    const int child = number + bit;
    if (child >= n) continue;
    const auto theirs = static_cast<std::size_t>(binomial_subtree(child, n)) * share;
    coming.push_back(at.recv(wrap(child + root, n),
                             {collected + static_cast<std::size_t>(bit) * share, theirs}));
  }
  if (!leaf) place({collected, share}, own);
  co_await at.completed(coming);
  if (number != 0) {
    const std::span<const std::byte> all =
        leaf ? own : std::span<const std::byte>{collected, parts * share};
    Message told = at.send(wrap(tree_parent(number) + root, n), all);
    co_await at.completed(told);
  } else if (!direct) {
    const std::size_t before = static_cast<std::size_t>(root) * share;
    const std::size_t after = parts * share - before;
    place({out + before, after}, {collected, after});
    place({out, before}, {collected + after, before});
  }
}

}  // namespace hocket::algorithm
