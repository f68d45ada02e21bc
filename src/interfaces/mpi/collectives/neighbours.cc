// Collectives with the neighbours of a topology.
#include "interfaces/mpi/collectives/exchange.h"
#include "mpi_calls.h"

namespace hocket::mpi {
namespace {

const Topology& topology_of(const Comm& comm) {
  require(comm.topology != nullptr, MPI_ERR_TOPOLOGY, "comm has no topology");
  return *comm.topology;
}

// Sends the i-th block to the i-th neighbour, and receives the i-th block from the i-th neighbour.
Pending exchange(Comm& comm, const Blocks& outgoing_part, const Blocks& incoming_part) {
  const Topology& topology = topology_of(comm);
  Exchange all(comm);
  // In a grid, a rank sends a part to its lower neighbour, which receives it as the part from its
  // upper neighbour. One rank may be both neighbours. Then only the subtag tells the two messages
  // apart.
  const bool is_grid = topology.kind == MPI_CART;
  const auto subtag = [&](std::size_t i, bool sends) {
    if (!is_grid) return 0;
    return static_cast<int>((sends ? i : i ^ 1) % 64);
  };
  for (std::size_t i = 0; i < topology.destinations.size(); ++i) {
    const Block part = outgoing_part(i);
    all.send(topology.destinations[i], part.buffer, part.count, part.type, subtag(i, true));
  }
  for (std::size_t i = 0; i < topology.sources.size(); ++i) {
    const Block part = incoming_part(i);
    all.recv(topology.sources[i],
             const_cast<void*>(part.buffer),
             part.count,
             part.type,
             subtag(i, false));
  }
  return all.begin();
}

const void* required(const void* buffer) {
  require_buffer(buffer, true);
  return buffer;
}

}  // namespace
}  // namespace hocket::mpi

namespace hocket::mpi::call {

Pending Neighbor_allgather(How,
                           const void* sendbuf,
                           MPI_Count sendcount,
                           MPI_Datatype sendtype,
                           void* recvbuf,
                           MPI_Count recvcount,
                           MPI_Datatype recvtype,
                           MPI_Comm comm) {
  return exchange(
      comm_of(comm), whole(sendbuf, sendcount, sendtype), equal(recvbuf, recvcount, recvtype));
}
Pending Neighbor_allgatherv(How,
                            const void* sendbuf,
                            MPI_Count sendcount,
                            MPI_Datatype sendtype,
                            void* recvbuf,
                            Counts recvcounts,
                            Counts displs,
                            MPI_Datatype recvtype,
                            MPI_Comm comm) {
  return exchange(comm_of(comm),
                  whole(sendbuf, sendcount, sendtype),
                  various(required(recvbuf), recvcounts, displs, recvtype));
}
Pending Neighbor_alltoall(How,
                          const void* sendbuf,
                          MPI_Count sendcount,
                          MPI_Datatype sendtype,
                          void* recvbuf,
                          MPI_Count recvcount,
                          MPI_Datatype recvtype,
                          MPI_Comm comm) {
  return exchange(
      comm_of(comm), equal(sendbuf, sendcount, sendtype), equal(recvbuf, recvcount, recvtype));
}
Pending Neighbor_alltoallv(How,
                           const void* sendbuf,
                           Counts sendcounts,
                           Counts sdispls,
                           MPI_Datatype sendtype,
                           void* recvbuf,
                           Counts recvcounts,
                           Counts rdispls,
                           MPI_Datatype recvtype,
                           MPI_Comm comm) {
  return exchange(comm_of(comm),
                  various(required(sendbuf), sendcounts, sdispls, sendtype),
                  various(required(recvbuf), recvcounts, rdispls, recvtype));
}
Pending Neighbor_alltoallw(How,
                           const void* sendbuf,
                           Counts sendcounts,
                           const MPI_Aint* sdispls,
                           const MPI_Datatype* sendtypes,
                           void* recvbuf,
                           Counts recvcounts,
                           const MPI_Aint* rdispls,
                           const MPI_Datatype* recvtypes,
                           MPI_Comm comm) {
  return exchange(comm_of(comm),
                  typed(required(sendbuf), sendcounts, sdispls, sendtypes),
                  typed(required(recvbuf), recvcounts, rdispls, recvtypes));
}

}  // namespace hocket::mpi::call
