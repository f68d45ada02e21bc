#include "engines/algorithm/algorithms.h"

namespace hocket::algorithm {

engine::Task ring_all_gather(Endpoint at, std::span<const std::byte> own, Array out) {
  place(out.part(at.rank()), own);
  for (int round = 1; round < at.size(); ++round) {
    Message in = at.recv(at.behind(1), out.part(at.behind(round)));
    Message sent = at.send(at.ahead(1), out.part(at.behind(round - 1)));
    co_await at.completed(in, sent);
  }
}

}  // namespace hocket::algorithm
