// Predicts the time of each algorithm from a few constants. AlgorithmEngine and HierarchyEngine
// choose algorithms by these predictions.
//
// The model is time = rounds * alpha + bytes * beta + reduced bytes * gamma, for the slowest rank.
// Its inputs are equal on all ranks, so all ranks choose the same algorithm.
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
  // Replaces beta in steps in which each rank sends only to the next rank. Then only few of the
  // ranks that share a network port send through it. 0: use beta.
  double beta_next = 0;
};

// The sizes of the pieces into which algorithms divide long arrays, in bytes. A value.
struct Pieces {
  std::size_t chunk = 128 * 1024;     // chunk of a pipeline
  std::size_t scratch = 1024 * 1024;  // approximate memory of a task
};

// The measured costs of a host's shared memory, and of TCP over a fast network; see
// docs/algorithms.md.
inline constexpr NetworkCosts kSharedMemory{
    .alpha = 0.4, .overhead = 0.1, .beta = 7e-5, .gamma = 4e-5};
inline constexpr NetworkCosts kTcp{.alpha = 15, .overhead = 2, .beta = 4e-4, .gamma = 4e-5};

// Returns the predicted time of `algorithm` on n ranks, in microseconds. kWays (catalogue.h) must
// list the algorithm for the signature's kind.
double predicted_us(Algorithm algorithm,
                    const engine::Signature& signature,
                    int n,
                    const NetworkCosts& network,
                    const Pieces& pieces) noexcept;
// Returns the least predicted time of all algorithms for the signature's kind.
double least_predicted_us(const engine::Signature& signature,
                          int n,
                          const NetworkCosts& network,
                          const Pieces& pieces) noexcept;

}  // namespace hocket::algorithm
