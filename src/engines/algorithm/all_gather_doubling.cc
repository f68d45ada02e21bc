#include "engines/algorithm/algorithms.h"
#include "engines/algorithm/cores.h"

namespace hocket::algorithm {
namespace {

// Returns the bytes of the parts of ranks [first, end), which are adjacent in the array.
std::span<std::byte> parts_between(const Array& array, int first, int end) {
  const Range from = array.parts.of(first);
  const Range to = array.parts.of(end - 1);
  return {array.data + from.first, to.end() - from.first};
}

}  // namespace

engine::Task doubling_all_gather(Endpoint at, std::span<const std::byte> own, Array out) {
  const int n = at.size();
  const int number = core_number(at.rank(), n);
  const int companion = core_companion(at.rank(), n);
  place(out.part(at.rank()), own);
  const std::span<std::byte> all = parts_between(out, 0, n);
  if (number < 0) {
    Message told = at.send(companion, out.part(at.rank()));
    co_await at.completed(told);
    Message heard = at.recv(companion, all);
    co_await at.completed(heard);
    co_return;
  }
  if (companion >= 0) {
    Message heard = at.recv(companion, out.part(companion));
    co_await at.completed(heard);
  }
  for (int have = 1; have < core_size(n); have *= 2) {
    const int ours = number & ~(have - 1);  // first number of this rank's group of `have` numbers
    const int theirs = ours ^ have;
    const int peer = core_rank(number ^ have, n);
    Message in =
        at.recv(peer, parts_between(out, core_first(theirs, n), core_first(theirs + have, n)));
    Message sent =
        at.send(peer, parts_between(out, core_first(ours, n), core_first(ours + have, n)));
    co_await at.completed(in, sent);
  }
  if (companion >= 0) {
    Message told = at.send(companion, all);
    co_await at.completed(told);
  }
}

}  // namespace hocket::algorithm
