// Coordinates threads whose kernels wait for each other on one GPU with operations that the driver
// makes only between kernels.
//
// The driver loads programs, allocates and frees only when all of a GPU's streams in the process
// are idle. Meanwhile it blocks launches of other threads (docs/gpu.md). If a running kernel waits
// for a kernel that has yet to be launched, this is a deadlock. So the ranks of a call announce
// their launches with a Round. A thread that needs such an operation requests a Quiet. Both stop
// waiting after some seconds and continue. The program's own loading is not announced; a deadlock
// that it causes ends at the deadline.
#pragma once

#include <shared_mutex>

#include "foundation/cuda/context.h"

namespace hocket::cuda {

// A rank's part of the launches of one call, from before the first rank launches until after the
// last one has. Rounds of different ranks and calls overlap. Any thread may use it.
class Round {
 public:
  explicit Round(const DeviceContext& device);
  ~Round();
  Round(const Round&) = delete;
  Round& operator=(const Round&) = delete;

 private:
  std::shared_timed_mutex* held_;
};

// While it exists, no round is in progress and none begins. A thread may nest it. Within its own
// round it does nothing. Any thread may use it.
class Quiet {
 public:
  explicit Quiet(const DeviceContext& device);
  ~Quiet();
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  std::shared_timed_mutex* held_;
};

}  // namespace hocket::cuda
