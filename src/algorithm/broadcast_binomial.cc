#include "algorithm/algorithms.h"

namespace hocket::algorithm {

// Ranks are numbered from the root on: number 0 is the root.
engine::Task binomial_broadcast(Endpoint at, Whole array, int root) {
  const int number = wrap(at.rank() - root, at.size());
  const std::span<std::byte> out{array.out, array.bytes};
  if (number == 0) {
    place(out, {array.in, array.bytes});
  } else {
    Message in = at.recv(wrap(tree_parent(number) + root, at.size()), out);
    co_await at.completed(in);
  }
  std::vector<Message> under_way;
  for (int bit = tree_first_bit(number, at.size()); bit > 0; bit /= 2) {
    const int child = number + bit;
    if (child < at.size()) under_way.push_back(at.send(wrap(child + root, at.size()), out));
  }
  co_await at.completed(under_way);
}

}  // namespace hocket::algorithm
