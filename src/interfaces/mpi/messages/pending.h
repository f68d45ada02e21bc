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
  MPI_Comm comm = MPI_COMM_NULL;  // communicator of the request, whose error handler is called
};

// A resource: the Works that a call waits for, and a function to call afterwards. An empty Pending
// has ended. Destroying a Pending before its end gives up the call, as with hocket::Work.
struct Pending {
  Work work = {};
  bool waits = false;             // for `work`
  std::vector<Work> others = {};  // further Works, if the call has several
  // Unpacks the data and translates the status. The thread that completes the call calls it once.
  std::function<void(Outcome&)> finish = {};
  // Called instead of `finish` for a receive, with its sender and size.
  std::function<void(const Received&, Outcome&)> when_received = {};
  Outcome outcome = {};
  bool is_receive = false;  // true: the call may be cancelled

  Pending() = default;
  explicit Pending(Work started) : work(std::move(started)), waits(true) {}

  // Returns true if the call has ended, after calling `finish`. Never blocks. Throws the call's
  // error.
  bool test();
  // Waits for the end of the call, then calls `finish`.
  void wait();
  void end();
};

}  // namespace hocket::mpi
