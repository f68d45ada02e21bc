#include "engines/algorithm/algorithms.h"
#include "engines/algorithm/cores.h"
#include "engines/algorithm/halving.h"
#include "engines/algorithm/scratch.h"

namespace hocket::algorithm {

// Both ranks of a pair combine the same two values, so all ranks get the same bits.
engine::Task doubling_all_reduce(Endpoint at, Reduction reduction, Whole array) {
  const int n = at.size();
  const Partial partial(reduction);
  const Endpoint partly = at.as(partial.dtype());
  const std::size_t count = array.bytes / at.element();
  const std::size_t bytes = count * partial.element();
  const Scratch memory(2 * bytes);
  std::byte* work = memory.get();
  std::byte* theirs = work + bytes;
  partial.load(work, array.in, count);
  co_await fold_into_core(at, partial, work, count, theirs);
  const int number = core_number(at.rank(), n);
  const int companion = core_companion(at.rank(), n);
  if (number < 0) {
    Message heard = at.recv(companion, {array.out, array.bytes});
    co_await at.completed(heard);
    co_return;
  }
  for (int bit = 1; bit < core_size(n); bit *= 2) {
    const int peer = core_rank(number ^ bit, n);
    Message in = partly.recv(peer, {theirs, bytes});
    Message sent = partly.send(peer, {work, bytes});
    co_await partly.completed(in, sent);
    partial.fold(work, work, theirs, count);
  }
  partial.finish(array.out, work, count);
  if (companion >= 0) {
    Message told = at.send(companion, {array.out, array.bytes});
    co_await at.completed(told);
  }
}

}  // namespace hocket::algorithm
