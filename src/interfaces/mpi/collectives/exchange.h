// Collective calls that are messages between given ranks: of neighbours, and between two groups.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "interfaces/mpi/buffers.h"

namespace hocket::mpi {

// A number of messages that make up a collective call, on the communicator's inner one. A value;
// `begin` starts them all.
class Exchange {
 public:
  explicit Exchange(Comm& comm) : comm_(comm) {}

  // Ranks are those of the peers: the group, or the other group. MPI_PROC_NULL: nobody.
  void send(int peer, const void* buffer, std::int64_t count, MPI_Datatype type, int lane = 0);
  void recv(int peer, void* buffer, std::int64_t count, MPI_Datatype type, int lane = 0);
  // Into memory of the exchange's own, packed.
  std::byte* recv_bytes(int peer, std::int64_t bytes);
  Pending begin(std::function<void(Outcome&)> last = {});

 private:
  struct One {
    int peer;
    int lane;
    Sent sent;
    Space space;
  };
  Comm& comm_;
  std::vector<One> sends_, receives_;
};

Pending inter_barrier(Comm&);
Pending inter_bcast(Comm&, void* buffer, std::int64_t count, MPI_Datatype, int root);
Pending inter_allgather(Comm&,
                        const void* sendbuf,
                        std::int64_t sendcount,
                        MPI_Datatype sendtype,
                        void* recvbuf,
                        std::int64_t recvcount,
                        MPI_Datatype recvtype);
Pending inter_allgatherv(Comm&,
                         const void* sendbuf,
                         std::int64_t sendcount,
                         MPI_Datatype sendtype,
                         void* recvbuf,
                         Counts recvcounts,
                         Counts displs,
                         MPI_Datatype recvtype);
Pending inter_gather(Comm&,
                     const void* sendbuf,
                     std::int64_t sendcount,
                     MPI_Datatype sendtype,
                     void* recvbuf,
                     std::int64_t recvcount,
                     MPI_Datatype recvtype,
                     int root);
Pending inter_gatherv(Comm&,
                      const void* sendbuf,
                      std::int64_t sendcount,
                      MPI_Datatype sendtype,
                      void* recvbuf,
                      Counts recvcounts,
                      Counts displs,
                      MPI_Datatype recvtype,
                      int root);
Pending inter_scatter(Comm&,
                      const void* sendbuf,
                      std::int64_t sendcount,
                      MPI_Datatype sendtype,
                      void* recvbuf,
                      std::int64_t recvcount,
                      MPI_Datatype recvtype,
                      int root);
Pending inter_scatterv(Comm&,
                       const void* sendbuf,
                       Counts sendcounts,
                       Counts displs,
                       MPI_Datatype sendtype,
                       void* recvbuf,
                       std::int64_t recvcount,
                       MPI_Datatype recvtype,
                       int root);
Pending inter_alltoall(Comm&,
                       const void* sendbuf,
                       std::int64_t sendcount,
                       MPI_Datatype sendtype,
                       void* recvbuf,
                       std::int64_t recvcount,
                       MPI_Datatype recvtype);
Pending inter_alltoallv(Comm&,
                        const void* sendbuf,
                        Counts sendcounts,
                        Counts sdispls,
                        MPI_Datatype sendtype,
                        void* recvbuf,
                        Counts recvcounts,
                        Counts rdispls,
                        MPI_Datatype recvtype);
Pending inter_alltoallw(Comm&,
                        const void* sendbuf,
                        Counts sendcounts,
                        Counts sdispls,
                        const MPI_Datatype* sendtypes,
                        void* recvbuf,
                        Counts recvcounts,
                        Counts rdispls,
                        const MPI_Datatype* recvtypes);
Pending inter_reduce(
    Comm&, const void* sendbuf, void* recvbuf, std::int64_t count, MPI_Datatype, MPI_Op, int root);
Pending inter_allreduce(
    Comm&, const void* sendbuf, void* recvbuf, std::int64_t count, MPI_Datatype, MPI_Op);
Pending inter_reduce_scatter(Comm&,
                             const void* sendbuf,
                             void* recvbuf,
                             const std::vector<std::int64_t>& counts,
                             MPI_Datatype,
                             MPI_Op);

}  // namespace hocket::mpi
