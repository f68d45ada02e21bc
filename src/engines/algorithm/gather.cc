#include "engines/algorithm/algorithms.h"

namespace hocket::algorithm {

engine::Task linear_gather(Endpoint at, std::span<const std::byte> own, Array out, int root) {
  if (at.rank() != root) {
    Message sent = at.send(root, own);
    co_await at.completed(sent);
    co_return;
  }
  std::vector<Message> under_way;
  for (int i = 1; i < at.size(); ++i) {
    under_way.push_back(at.recv(at.ahead(i), out.part(at.ahead(i))));
  }
  place(out.part(root), own);
  co_await at.completed(under_way);
}

}  // namespace hocket::algorithm
