// How long each algorithm takes, as far as a few constants tell: what choices go by.
//
// The model is the usual one, time = rounds * alpha + bytes * beta + folded bytes * gamma, counted
// along the slowest rank. Only facts that are equal on all ranks go in.
#pragma once

#include <cstddef>

#include "engine/call.h"
#include "engines/algorithm/catalogue.h"

namespace hocket::algorithm {

// What a carrier of messages costs. A value; microseconds.
struct NetworkCosts {
  double alpha = 0.4;     // from a send to its receipt, however short
  double overhead = 0.1;  // for one message more among those that are under way at once
  double beta = 7e-5;     // a byte that a rank sends, or receives
  double gamma = 4e-5;    // a byte that is reduced, or copied aside
  // As beta, where each rank sends to the next one and to nobody else: of ranks that share a port
  // few may do so through it then. 0: beta.
  double beta_next = 0;
};

// How algorithms cut what is long. A value; bytes.
struct Pieces {
  std::size_t chunk = 128 * 1024;     // of pipelines
  std::size_t scratch = 1024 * 1024;  // that a task takes about
};

// Of a host's shared memory, and between hosts by TCP over a fast network; measured, see
// docs/algorithms.md.
inline constexpr NetworkCosts kSharedMemory{
    .alpha = 0.4, .overhead = 0.1, .beta = 7e-5, .gamma = 4e-5};
inline constexpr NetworkCosts kTcp{.alpha = 15, .overhead = 2, .beta = 4e-4, .gamma = 4e-5};

// Microseconds that `algorithm`, a way of the signature's kind, takes on n ranks.
double predicted_us(Algorithm algorithm,
                    const engine::Signature& signature,
                    int n,
                    const NetworkCosts& network,
                    const Pieces& pieces) noexcept;

}  // namespace hocket::algorithm
