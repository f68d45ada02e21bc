#include "interfaces/mpi/collectives/exchange.h"

#include "hocket/operator.h"
#include "interfaces/mpi/collectives/operators.h"
#include "interfaces/mpi/failure.h"

namespace hocket::mpi {
namespace {

// Exchanges have tags in turn, each a number of lanes.
constexpr std::uint32_t kLanes = 64, kTurns = 1U << 24;

}  // namespace

void Exchange::send(int peer, const void* buffer, std::int64_t count, MPI_Datatype type, int lane) {
  if (peer == MPI_PROC_NULL) return;
  sends_.push_back({peer, lane, outgoing(buffer, count, type_of(type)), {}});
}
void Exchange::recv(int peer, void* buffer, std::int64_t count, MPI_Datatype type, int lane) {
  if (peer == MPI_PROC_NULL) return;
  receives_.push_back({peer, lane, {}, incoming(buffer, count, type)});
}
std::byte* Exchange::recv_bytes(int peer, std::int64_t bytes) {
  Space space;
  space.bytes = bytes;
  space.copy = std::make_shared<Bytes>(static_cast<std::size_t>(bytes));
  space.data = space.copy->data();
  receives_.push_back({peer, 0, {}, space});
  return space.data;
}

Pending Exchange::begin(std::function<void(Outcome&)> last) {
  require(comm_.inner != nullptr, MPI_ERR_INTERN, "the communicator has none for its exchanges");
  Pending pending;
  const std::lock_guard lock(comm_.starting);
  const auto first = static_cast<int>((comm_.exchanges++ % kTurns) * kLanes);
  for (const One& one : receives_) {
    pending.others.push_back(comm_.inner->recv_async(
        one.space.view(), one.peer + comm_.first_peer(), {.tag = first + one.lane}));
  }
  for (const One& one : sends_) {
    pending.others.push_back(comm_.inner->send_async(
        one.sent.view(), one.peer + comm_.first_peer(), {.tag = first + one.lane}));
  }
  pending.finish = [sends = std::move(sends_),
                    receives = std::move(receives_),
                    last = std::move(last)](Outcome& outcome) {
    for (const One& one : receives) {
      if (one.space.type != nullptr) one.space.take(static_cast<std::uint64_t>(one.space.bytes));
    }
    if (last) last(outcome);
  };
  return pending;
}

namespace {

int peers_of(const Comm& comm) { return static_cast<int>(comm.peers().members.size()); }

// The role of a rank in a rooted call between two groups.
enum class Role { kRoot, kNobody, kOther };
Role part_of(const Comm& comm, int root) {
  if (root == MPI_ROOT) return Role::kRoot;
  if (root == MPI_PROC_NULL) return Role::kNobody;
  require(root >= 0 && root < peers_of(comm), MPI_ERR_ROOT, "root is no rank of the other group");
  return Role::kOther;
}

const void* part(const void* buffer, std::int64_t elements, MPI_Datatype type) {
  return at(buffer, elements * type_of(type).extent());
}
void* part(void* buffer, std::int64_t elements, MPI_Datatype type) {
  return at(buffer, elements * type_of(type).extent());
}

}  // namespace

Pending inter_barrier(Comm& comm) {
  Exchange all(comm);
  for (int i = 0; i < peers_of(comm); ++i) {
    all.send(i, nullptr, 0, MPI_BYTE);
    all.recv(i, nullptr, 0, MPI_BYTE);
  }
  return all.begin();
}

Pending inter_bcast(Comm& comm, void* buffer, std::int64_t count, MPI_Datatype type, int root) {
  Exchange all(comm);
  const Role own = part_of(comm, root);
  for (int i = 0; own == Role::kRoot && i < peers_of(comm); ++i) all.send(i, buffer, count, type);
  if (own == Role::kOther) all.recv(root, buffer, count, type);
  return all.begin();
}

Pending inter_allgather(Comm& comm,
                        const void* sendbuf,
                        std::int64_t sendcount,
                        MPI_Datatype sendtype,
                        void* recvbuf,
                        std::int64_t recvcount,
                        MPI_Datatype recvtype) {
  Exchange all(comm);
  for (int i = 0; i < peers_of(comm); ++i) {
    all.send(i, sendbuf, sendcount, sendtype);
    all.recv(i, part(recvbuf, i * recvcount, recvtype), recvcount, recvtype);
  }
  return all.begin();
}
Pending inter_allgatherv(Comm& comm,
                         const void* sendbuf,
                         std::int64_t sendcount,
                         MPI_Datatype sendtype,
                         void* recvbuf,
                         Counts recvcounts,
                         Counts displs,
                         MPI_Datatype recvtype) {
  Exchange all(comm);
  for (int i = 0; i < peers_of(comm); ++i) {
    const auto k = static_cast<std::size_t>(i);
    all.send(i, sendbuf, sendcount, sendtype);
    all.recv(i, part(recvbuf, displs[k], recvtype), recvcounts[k], recvtype);
  }
  return all.begin();
}

Pending inter_gather(Comm& comm,
                     const void* sendbuf,
                     std::int64_t sendcount,
                     MPI_Datatype sendtype,
                     void* recvbuf,
                     std::int64_t recvcount,
                     MPI_Datatype recvtype,
                     int root) {
  Exchange all(comm);
  const Role own = part_of(comm, root);
  for (int i = 0; own == Role::kRoot && i < peers_of(comm); ++i) {
    all.recv(i, part(recvbuf, i * recvcount, recvtype), recvcount, recvtype);
  }
  if (own == Role::kOther) all.send(root, sendbuf, sendcount, sendtype);
  return all.begin();
}
Pending inter_gatherv(Comm& comm,
                      const void* sendbuf,
                      std::int64_t sendcount,
                      MPI_Datatype sendtype,
                      void* recvbuf,
                      Counts recvcounts,
                      Counts displs,
                      MPI_Datatype recvtype,
                      int root) {
  Exchange all(comm);
  const Role own = part_of(comm, root);
  for (int i = 0; own == Role::kRoot && i < peers_of(comm); ++i) {
    const auto k = static_cast<std::size_t>(i);
    all.recv(i, part(recvbuf, displs[k], recvtype), recvcounts[k], recvtype);
  }
  if (own == Role::kOther) all.send(root, sendbuf, sendcount, sendtype);
  return all.begin();
}

Pending inter_scatter(Comm& comm,
                      const void* sendbuf,
                      std::int64_t sendcount,
                      MPI_Datatype sendtype,
                      void* recvbuf,
                      std::int64_t recvcount,
                      MPI_Datatype recvtype,
                      int root) {
  Exchange all(comm);
  const Role own = part_of(comm, root);
  for (int i = 0; own == Role::kRoot && i < peers_of(comm); ++i) {
    all.send(i, part(sendbuf, i * sendcount, sendtype), sendcount, sendtype);
  }
  if (own == Role::kOther) all.recv(root, recvbuf, recvcount, recvtype);
  return all.begin();
}
Pending inter_scatterv(Comm& comm,
                       const void* sendbuf,
                       Counts sendcounts,
                       Counts displs,
                       MPI_Datatype sendtype,
                       void* recvbuf,
                       std::int64_t recvcount,
                       MPI_Datatype recvtype,
                       int root) {
  Exchange all(comm);
  const Role own = part_of(comm, root);
  for (int i = 0; own == Role::kRoot && i < peers_of(comm); ++i) {
    const auto k = static_cast<std::size_t>(i);
    all.send(i, part(sendbuf, displs[k], sendtype), sendcounts[k], sendtype);
  }
  if (own == Role::kOther) all.recv(root, recvbuf, recvcount, recvtype);
  return all.begin();
}

Pending inter_alltoall(Comm& comm,
                       const void* sendbuf,
                       std::int64_t sendcount,
                       MPI_Datatype sendtype,
                       void* recvbuf,
                       std::int64_t recvcount,
                       MPI_Datatype recvtype) {
  Exchange all(comm);
  for (int i = 0; i < peers_of(comm); ++i) {
    all.send(i, part(sendbuf, i * sendcount, sendtype), sendcount, sendtype);
    all.recv(i, part(recvbuf, i * recvcount, recvtype), recvcount, recvtype);
  }
  return all.begin();
}
Pending inter_alltoallv(Comm& comm,
                        const void* sendbuf,
                        Counts sendcounts,
                        Counts sdispls,
                        MPI_Datatype sendtype,
                        void* recvbuf,
                        Counts recvcounts,
                        Counts rdispls,
                        MPI_Datatype recvtype) {
  Exchange all(comm);
  for (int i = 0; i < peers_of(comm); ++i) {
    const auto k = static_cast<std::size_t>(i);
    all.send(i, part(sendbuf, sdispls[k], sendtype), sendcounts[k], sendtype);
    all.recv(i, part(recvbuf, rdispls[k], recvtype), recvcounts[k], recvtype);
  }
  return all.begin();
}
Pending inter_alltoallw(Comm& comm,
                        const void* sendbuf,
                        Counts sendcounts,
                        Counts sdispls,
                        const MPI_Datatype* sendtypes,
                        void* recvbuf,
                        Counts recvcounts,
                        Counts rdispls,
                        const MPI_Datatype* recvtypes) {
  Exchange all(comm);
  for (int i = 0; i < peers_of(comm); ++i) {
    const auto k = static_cast<std::size_t>(i);
    all.send(i, at(sendbuf, sdispls[k]), sendcounts[k], sendtypes[k]);
    all.recv(i, at(recvbuf, rdispls[k]), recvcounts[k], recvtypes[k]);
  }
  return all.begin();
}

// --- Reductions: what comes is combined in the order of the ranks --------------------------------

namespace {

// Packed elements of every peer, combined and unpacked at the end.
Pending combine_all(Comm& comm,
                    Exchange& all,
                    std::int64_t count,
                    MPI_Datatype type,
                    MPI_Op op,
                    void* recvbuf,
                    std::int64_t skip,
                    std::int64_t keep) {
  const DatatypePtr shape = type_object(type).type;
  const std::int64_t bytes = bytes_of(*shape, count);
  std::vector<std::byte*> given;
  for (int i = 0; i < peers_of(comm); ++i) given.push_back(all.recv_bytes(i, bytes));
  auto called = std::make_shared<Called>(op, type);
  return all.begin([=](Outcome&) {
    const Operator combine = called->as_operator();
    for (std::size_t i = 1; i < given.size() && bytes > 0; ++i) {
      combine.combine(given[0], given[i], static_cast<std::size_t>(bytes), combine.context);
    }
    if (keep > 0 && bytes > 0) {
      shape->unpack(given[0] + skip * shape->size(), keep, recvbuf);
    }
  });
}

}  // namespace

Pending inter_reduce(Comm& comm,
                     const void* sendbuf,
                     void* recvbuf,
                     std::int64_t count,
                     MPI_Datatype type,
                     MPI_Op op,
                     int root) {
  Exchange all(comm);
  const Role own = part_of(comm, root);
  if (own == Role::kRoot) return combine_all(comm, all, count, type, op, recvbuf, 0, count);
  if (own == Role::kOther) all.send(root, sendbuf, count, type);
  return all.begin();
}
Pending inter_allreduce(Comm& comm,
                        const void* sendbuf,
                        void* recvbuf,
                        std::int64_t count,
                        MPI_Datatype type,
                        MPI_Op op) {
  Exchange all(comm);
  for (int i = 0; i < peers_of(comm); ++i) all.send(i, sendbuf, count, type);
  return combine_all(comm, all, count, type, op, recvbuf, 0, count);
}
Pending inter_reduce_scatter(Comm& comm,
                             const void* sendbuf,
                             void* recvbuf,
                             const std::vector<std::int64_t>& counts,
                             MPI_Datatype type,
                             MPI_Op op) {
  Exchange all(comm);
  std::int64_t total = 0, before = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (i < static_cast<std::size_t>(comm.rank)) before += counts[i];
    total += counts[i];
  }
  for (int i = 0; i < peers_of(comm); ++i) all.send(i, sendbuf, total, type);
  return combine_all(
      comm, all, total, type, op, recvbuf, before, counts[static_cast<std::size_t>(comm.rank)]);
}

}  // namespace hocket::mpi
