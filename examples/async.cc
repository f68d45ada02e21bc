// Async calls: start, compute, wait. Here the gradients of a network's layers, last layer first.
#include <hocket/hocket.h>

#include <cstdio>
#include <vector>

#include "check.h"

using examples::expect_equal;

namespace {

// Stands for the backward pass of one layer.
std::vector<float> gradient_of_layer(int layer, int rank) {
  std::vector<float> gradient(4096);
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    gradient[i] = static_cast<float>(layer + 1) * (rank + 1) + static_cast<float>(i % 7);
  }
  return gradient;
}

}  // namespace

int main() try {
  hocket::World world = hocket::init();
  hocket::Communicator& comm = world.communicator();
  const int n = comm.size();

  // While one layer's gradients travel, the next layer's are computed. The arrays stay where they
  // are until their call has been waited for.
  constexpr int kLayers = 6;
  std::vector<std::vector<float>> gradients(kLayers);
  std::vector<hocket::Work> pending;
  for (int layer = kLayers - 1; layer >= 0; --layer) {
    gradients[layer] = gradient_of_layer(layer, comm.rank());
    pending.push_back(comm.all_reduce_async(gradients[layer]));
  }
  for (hocket::Work& work : pending) work.wait();

  for (int layer = 0; layer < kLayers; ++layer) {
    for (std::size_t i = 0; i < gradients[layer].size(); ++i) {
      const float wanted =
          static_cast<float>(layer + 1) * n * (n + 1) / 2 + static_cast<float>(n * (i % 7));
      expect_equal(gradients[layer][i], wanted, "a gradient of layer " + std::to_string(layer));
    }
  }

  // Or ask now and then, and do something useful in between.
  hocket::Work barrier = comm.barrier_async();
  long useful = 0;
  while (!barrier.test()) ++useful;
  barrier.wait();  // returns at once, or throws the call's error
  expect_equal(barrier.error().has_value(), false, "whether the barrier failed");

  if (comm.rank() == 0) std::printf("%d layers summed over %d ranks\n", kLayers, n);
  return 0;
} catch (const std::exception& error) {
  return examples::failed(error);
}
