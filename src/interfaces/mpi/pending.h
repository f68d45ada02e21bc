// A call that has begun.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "hocket/work.h"
#include "interfaces/mpi/abi.h"

namespace hocket::mpi {

enum class How { kBlocking, kImmediate };

// How a call ended. A value.
struct Outcome {
  int source = MPI_ANY_SOURCE;
  int tag = MPI_ANY_TAG;
  int code = MPI_SUCCESS;
  std::uint64_t bytes = 0;
  bool cancelled = false;
};

// A resource: what a call waits for, and what is to be done once that is there. One that is empty
// has ended. Dropped before its end, it is given up as hocket::Work is.
struct Pending {
  Work work = {};
  bool waits = false;             // for `work`
  std::vector<Work> others = {};  // of calls made of several
  // Unpacks, translates the status. Once, in the thread that completes the call.
  std::function<void(Outcome&)> finish = {};
  // The same for a receive, told what has come.
  std::function<void(const Received&, Outcome&)> when_received = {};
  Outcome outcome = {};
  bool is_receive = false;  // it may be cancelled

  Pending() = default;
  explicit Pending(Work started) : work(std::move(started)), waits(true) {}

  bool test();
  // Waits, and finishes.
  void wait();
  void end();
};

}  // namespace hocket::mpi
