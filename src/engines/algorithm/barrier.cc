#include "engines/algorithm/algorithms.h"

namespace hocket::algorithm {

engine::Task dissemination_barrier(Endpoint at) {
  for (int distance = 1; distance < at.size(); distance *= 2) {
    Message in = at.recv(at.behind(distance), {});
    Message out = at.send(at.ahead(distance), {});
    co_await at.completed(in, out);
  }
}

}  // namespace hocket::algorithm
