#include "engines/algorithm/algorithms.h"

namespace hocket::algorithm {

engine::Task linear_scatter(Endpoint at, ConstArray in, std::span<std::byte> own, int root) {
  if (at.rank() != root) {
    Message received = at.recv(root, own);
    co_await at.completed(received);
    co_return;
  }
  std::vector<Message> under_way;
  for (int i = 1; i < at.size(); ++i) {
    under_way.push_back(at.send(at.ahead(i), in.part(at.ahead(i))));
  }
  place(own, in.part(root));
  co_await at.completed(under_way);
}

}  // namespace hocket::algorithm
