// Symmetric memory: arrays that the other ranks can reach, for collectives that copy nothing.
#include <hocket/hocket.h>

#include <cstdio>

#include "check.h"

using examples::expect_equal;

int main() try {
  hocket::World world = hocket::init();
  // The ranks that share this host's memory.
  hocket::Communicator& comm = world.intra_node();
  const int rank = comm.rank();
  const int n = comm.size();

  // Every rank makes the same array; it begins zeroed.
  constexpr std::size_t kCount = 1 << 16;
  hocket::SymmetricArray array = comm.symmetric().empty<float>(kCount);
  float* mine = array.data<float>();
  expect_equal(mine[kCount - 1], 0.0f, "a fresh element");

  // Collectives take it as any other array, and are faster on it.
  for (std::size_t i = 0; i < kCount; ++i) mine[i] = static_cast<float>(i % 100) * (rank + 1);
  comm.all_reduce(array);
  for (std::size_t i = 0; i < kCount; ++i) {
    expect_equal(
        mine[i], static_cast<float>(i % 100) * n * (n + 1) / 2, "element " + std::to_string(i));
  }

  // A peer's part can be read where it lies, between calls that order the ranks.
  comm.barrier();
  mine[0] = 100.0f + rank;
  comm.barrier();
  for (int peer = 0; peer < n; ++peer) {
    const auto* theirs = static_cast<const float*>(array.peer(peer).data());
    expect_equal(theirs[0], 100.0f + peer, "what rank " + std::to_string(peer) + " wrote");
  }

  // No rank goes on before all have read. Then the memory is released.
  comm.barrier();
  array.free();
  if (rank == 0) std::printf("%d ranks summed %zu elements without a copy\n", n, kCount);
  return 0;
} catch (const std::exception& error) {
  return examples::failed(error);
}
