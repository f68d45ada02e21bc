#include "algorithm/algorithms.h"

namespace hocket::algorithm {

// Everybody begins with another one, so that nobody is sent everything at once.
engine::Task direct_all_gather(Endpoint at, std::span<const std::byte> own, Array out) {
  std::vector<Message> under_way;
  under_way.reserve(2 * static_cast<std::size_t>(at.size()));
  for (int i = 1; i < at.size(); ++i) {
    under_way.push_back(at.recv(at.behind(i), out.part(at.behind(i))));
  }
  place(out.part(at.rank()), own);
  const std::span<const std::byte> sent = out.part(at.rank());
  for (int i = 1; i < at.size(); ++i) under_way.push_back(at.send(at.ahead(i), sent));
  co_await at.completed(under_way);
}

}  // namespace hocket::algorithm
