// Prevents deadlocks between kernels that wait for each other on one GPU, and operations that the
// driver makes only between kernels.
//
// The driver loads programs, allocates and frees only when all of a GPU's streams in the process
// are idle. While it waits for that, it blocks launches of other threads (docs/gpu.md). This is a
// deadlock if a running kernel waits for a kernel that is yet to be launched:
//
//   thread A   launches kernel 1, which waits for kernel 2 ---------------> ...
//   thread B                  allocates: waits for kernel 1 --------------> ...
//   thread C                             launches kernel 2: blocked by B -> ...
//
// So the ranks of a call hold a LaunchRound while they launch, and a thread that needs such an
// operation holds a LaunchPause. Both give up waiting after 3 s and continue. When the program
// itself loads or allocates, it holds no LaunchPause; a deadlock that it causes ends at the call's
// deadline.
#pragma once

#include <shared_mutex>

#include "foundation/cuda/context.h"

namespace hocket::cuda {

// Marks the launches of one call on one rank. A rank holds it from before any rank of the call
// launches until all have launched. Rounds of different ranks and calls overlap. Any thread may use
// it.
class LaunchRound {
 public:
  explicit LaunchRound(const DeviceContext& device);
  ~LaunchRound();
  LaunchRound(const LaunchRound&) = delete;
  LaunchRound& operator=(const LaunchRound&) = delete;

 private:
  std::shared_timed_mutex* held_;
};

// While it exists, no round is in progress on the GPU, and none begins. A thread may nest it. It
// does nothing within a round of the same thread. Any thread may use it.
class LaunchPause {
 public:
  explicit LaunchPause(const DeviceContext& device);
  ~LaunchPause();
  LaunchPause(const LaunchPause&) = delete;
  LaunchPause& operator=(const LaunchPause&) = delete;

 private:
  std::shared_timed_mutex* held_;
};

}  // namespace hocket::cuda
