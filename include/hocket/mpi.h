// A bootstrap by MPI, for programs that already use MPI. All of it is in this header, which the
// program compiles with its own mpi.h of any MPI. So <hocket/hocket.h> does not include it.
//
//     MPI_Init(nullptr, nullptr);
//     auto world = hocket::init_mpi(MPI_COMM_WORLD);
#pragma once

#include <mpi.h>

#include <string>

#include "hocket/bootstrap.h"
#include "hocket/error.h"

namespace hocket {

// A value that refers to an MPI communicator, which must outlive it. MPI must be initialized, and
// the calling thread must be allowed to call MPI. If the communicator's handler returns an MPI
// error, it becomes a RendezvousError.
class MpiBootstrap final : public Bootstrap {
 public:
  explicit MpiBootstrap(MPI_Comm comm) : comm_(comm) {
    require(MPI_Comm_rank(comm, &rank_), "MPI_Comm_rank");
    require(MPI_Comm_size(comm, &size_), "MPI_Comm_size");
  }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  void broadcast(std::span<std::byte> bytes, int root) override {
    require(MPI_Bcast(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, root, comm_),
            "MPI_Bcast");
  }
  void all_reduce(std::span<std::int64_t> values, Fold fold) override {
    const MPI_Op op = fold == Fold::kSum ? MPI_SUM : fold == Fold::kMin ? MPI_MIN : MPI_MAX;
    require(
        MPI_Allreduce(
            MPI_IN_PLACE, values.data(), static_cast<int>(values.size()), MPI_INT64_T, op, comm_),
        "MPI_Allreduce");
  }

 private:
  static void require(int code, const char* what) {
    if (code == MPI_SUCCESS) return;
    throw RendezvousError(std::string(what) + " failed with code " + std::to_string(code) +
                          " while hocket was set up by MPI");
  }

  MPI_Comm comm_;
  int rank_ = 0;
  int size_ = 1;
};

// Joins with the ranks of an MPI communicator. Parameters and errors are those of `init` with a
// Bootstrap.
inline World init_mpi(MPI_Comm comm, const InitOptions& options = {}) {
  MpiBootstrap bootstrap(comm);
  return init(bootstrap, options);
}

}  // namespace hocket
