// Collectives with the neighbours of a topology.
#include "interfaces/mpi/collectives/exchange.h"
#include "mpi_calls.h"

namespace hocket::mpi {
namespace {

const Topology& topology_of(const Comm& comm) {
  require(comm.topology != nullptr, MPI_ERR_TOPOLOGY, "comm has no topology");
  return *comm.topology;
}

// The place of the part for, or of, the i-th neighbour. Values.
struct Block {
  const void* buffer;
  std::int64_t count;
  MPI_Datatype type;
};
template <typename From, typename To>
Pending exchange(Comm& comm, From outgoing_part, To incoming_part) {
  const Topology& topology = topology_of(comm);
  Exchange all(comm);
  // In a grid the part for the lower neighbour arrives there as that of the upper one: where both
  // are one rank, only the lane tells them apart.
  const bool is_grid = topology.kind == MPI_CART;
  const auto lane = [&](std::size_t i, bool sends) {
    if (!is_grid) return 0;
    return static_cast<int>((sends ? i : i ^ 1) % 64);
  };
  for (std::size_t i = 0; i < topology.destinations.size(); ++i) {
    const Block part = outgoing_part(i);
    all.send(topology.destinations[i], part.buffer, part.count, part.type, lane(i, true));
  }
  for (std::size_t i = 0; i < topology.sources.size(); ++i) {
    const Block part = incoming_part(i);
    all.recv(
        topology.sources[i], const_cast<void*>(part.buffer), part.count, part.type, lane(i, false));
  }
  return all.begin();
}

const void* element(const void* buffer, std::int64_t index, MPI_Datatype type) {
  return at(buffer, index * type_of(type).extent());
}

auto whole(const void* buffer, std::int64_t count, MPI_Datatype type) {
  return [=](std::size_t) { return Block{buffer, count, type}; };
}
auto equal(const void* buffer, std::int64_t count, MPI_Datatype type) {
  return [=](std::size_t i) {
    return Block{element(buffer, static_cast<std::int64_t>(i) * count, type), count, type};
  };
}
auto various(const void* buffer, Counts counts, Counts displs, MPI_Datatype type) {
  return [=](std::size_t i) { return Block{element(buffer, displs[i], type), counts[i], type}; };
}
auto typed(const void* buffer, Counts counts, Counts displs, const MPI_Datatype* types) {
  return [=](std::size_t i) { return Block{at(buffer, displs[i]), counts[i], types[i]}; };
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
                  various(recvbuf, recvcounts, displs, recvtype));
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
                  various(sendbuf, sendcounts, sdispls, sendtype),
                  various(recvbuf, recvcounts, rdispls, recvtype));
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
                  typed(sendbuf, sendcounts, sdispls, sendtypes),
                  typed(recvbuf, recvcounts, rdispls, recvtypes));
}

}  // namespace hocket::mpi::call
