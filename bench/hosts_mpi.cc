// One rank of bench/hosts.py whose calls an MPI library carries.
#include <mpi.h>

#include "hosts_rank.h"

namespace {

class Mpi {
 public:
  Mpi() {
    MPI_Init(nullptr, nullptr);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }
  ~Mpi() { MPI_Finalize(); }
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  void barrier() { MPI_Barrier(MPI_COMM_WORLD); }
  void call(hosts::Case& each) {
    const auto whole = static_cast<int>(each.out.size());
    const auto part = static_cast<int>(each.part);
    const float* in = each.in.data();
    float* out = each.out.data();
    switch (each.kind) {
      case hosts::Kind::kAllReduce:
        MPI_Allreduce(in, out, whole, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
      case hosts::Kind::kAllGather:
        MPI_Allgather(in, part, MPI_FLOAT, out, part, MPI_FLOAT, MPI_COMM_WORLD);
        break;
      case hosts::Kind::kReduceScatter:
        MPI_Reduce_scatter_block(in, out, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
      case hosts::Kind::kBroadcast:
        MPI_Bcast(out, whole, MPI_FLOAT, 0, MPI_COMM_WORLD);
        break;
      case hosts::Kind::kAllToAll:
        MPI_Alltoall(in, part, MPI_FLOAT, out, part, MPI_FLOAT, MPI_COMM_WORLD);
        break;
    }
  }

 private:
  int rank_ = 0;
  int size_ = 0;
};

}  // namespace

int main(int, char** argv) {
  Mpi library;
  return hosts::serve(argv, library);
}
