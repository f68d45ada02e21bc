// Predicts the time of each algorithm from a few constants. The choice of algorithms uses it.
//
// The model is time = rounds * alpha + bytes * beta + reduced bytes * gamma, along the slowest
// rank. Its inputs are equal on all ranks.
#pragma once

#include <cstddef>

#include "engine/call.h"
#include "engines/algorithm/catalogue.h"

namespace hocket::algorithm {

// The costs of a carrier of messages, in microseconds. A value.
struct NetworkCosts {
  double alpha = 0.4;     // from the send of a short message to its receipt
  double overhead = 0.1;  // for each additional message in flight
  double beta = 7e-5;     // for each byte that a rank sends or receives
  double gamma = 4e-5;    // for each byte that is reduced or copied
  // Replaces beta if each rank sends only to the next rank. Then few of the ranks that share a
  // network port use it. 0: beta.
  double beta_next = 0;
};

// The sizes into which algorithms cut long arrays, in bytes. A value.
struct Pieces {
  std::size_t chunk = 128 * 1024;     // of pipelines
  std::size_t scratch = 1024 * 1024;  // approximate memory of a task
};

// The measured costs of a host's shared memory, and of TCP over a fast network; see
// docs/algorithms.md.
inline constexpr NetworkCosts kSharedMemory{
    .alpha = 0.4, .overhead = 0.1, .beta = 7e-5, .gamma = 4e-5};
inline constexpr NetworkCosts kTcp{.alpha = 15, .overhead = 2, .beta = 4e-4, .gamma = 4e-5};

// Returns the predicted time of `algorithm` on n ranks, in microseconds. It must be a way of the
// signature's kind.
double predicted_us(Algorithm algorithm,
                    const engine::Signature& signature,
                    int n,
                    const NetworkCosts& network,
                    const Pieces& pieces) noexcept;

}  // namespace hocket::algorithm
