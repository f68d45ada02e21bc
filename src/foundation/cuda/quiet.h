// Threads whose kernels wait for each other on one GPU, and what the driver does only between
// kernels.
//
// The driver loads programs, allocates and frees when all of a GPU's streams in the process have
// ended, and holds up other threads' launches meanwhile (docs/gpu.md). Should one of these kernels
// wait for another that is yet to be launched, nobody goes on. So the ranks of a call tell when
// they launch (a Round), and whoever needs the driver so asks for Quiet. Both give up waiting after
// some seconds and go on: a program's own loading is not told of, and the deadline sees to what
// comes of it.
#pragma once

#include <shared_mutex>

#include "foundation/cuda/context.h"

namespace hocket::cuda {

// A rank's part in the launching of one call, from before the first rank launches to after the last
// has: rounds of different ranks and calls overlap. Any thread.
class Round {
 public:
  explicit Round(const DeviceContext& device);
  ~Round();
  Round(const Round&) = delete;
  Round& operator=(const Round&) = delete;

 private:
  std::shared_timed_mutex* held_;
};

// No round is under way, and none begins. A thread may ask again within its own, and within its own
// round, where it gets nothing. Any thread.
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
