// Collectives with equal parts within one group. An intercommunicator's are in exchange.cc.
#include "interfaces/mpi/collectives/collective.h"
#include "interfaces/mpi/collectives/exchange.h"
#include "mpi_calls.h"

namespace hocket::mpi::call {

Pending Barrier(How how, MPI_Comm handle) {
  Comm& comm = comm_of(handle);
  if (comm.is_inter()) return inter_barrier(comm);
  return run(
      how, comm, [&] { comm.net->barrier(); }, [&] { return comm.net->barrier_async(); }, {});
}

Pending Bcast(
    How how, void* buffer, MPI_Count count, MPI_Datatype datatype, int root, MPI_Comm handle) {
  Comm& comm = comm_of(handle);
  if (comm.is_inter()) return inter_bcast(comm, {buffer, count, datatype}, root);
  check_root(comm, root);
  Space space = incoming(buffer, count, datatype);
  if (space.copy != nullptr && comm.rank == root) {
    type_of(datatype).pack(buffer, count, space.data);
  }
  Finish finish;
  if (space.copy != nullptr) {
    finish = [space, gives = comm.rank == root](Outcome&) {
      if (!gives) space.take(static_cast<std::uint64_t>(space.bytes));
    };
  }
  const RootOptions options{.root = root};
  return run(
      how,
      comm,
      [&] { comm.net->broadcast(space.view(), options); },
      [&] { return comm.net->broadcast_async(space.view(), options); },
      std::move(finish));
}

Pending Allgather(How how,
                  const void* sendbuf,
                  MPI_Count sendcount,
                  MPI_Datatype sendtype,
                  void* recvbuf,
                  MPI_Count recvcount,
                  MPI_Datatype recvtype,
                  MPI_Comm handle) {
  Comm& comm = comm_of(handle);
  if (comm.is_inter()) {
    return inter_exchange(
        comm, whole(sendbuf, sendcount, sendtype), equal(recvbuf, recvcount, recvtype));
  }
  const std::int64_t n = comm.size();
  const Space space = incoming(recvbuf, recvcount * n, recvtype);
  const Datatype& type = type_of(recvtype);
  Sent sent;
  if (sendbuf == MPI_IN_PLACE) {
    if (space.copy == nullptr) {
      return run(
          how,
          comm,
          [&] { comm.net->all_gather(space.view()); },
          [&] { return comm.net->all_gather_async(space.view()); },
          {});
    }
    sent = outgoing(at(recvbuf, comm.rank * recvcount * type.extent()), recvcount, type);
  } else {
    sent = outgoing(sendbuf, sendcount, type_of(sendtype));
  }
  return run(
      how,
      comm,
      [&] { comm.net->all_gather(sent.view(), space.view()); },
      [&] { return comm.net->all_gather_async(sent.view(), space.view()); },
      taking(sent, space));
}

Pending Gather(How how,
               const void* sendbuf,
               MPI_Count sendcount,
               MPI_Datatype sendtype,
               void* recvbuf,
               MPI_Count recvcount,
               MPI_Datatype recvtype,
               int root,
               MPI_Comm handle) {
  Comm& comm = comm_of(handle);
  if (comm.is_inter()) {
    return inter_gather(
        comm, {sendbuf, sendcount, sendtype}, equal(recvbuf, recvcount, recvtype), root);
  }
  check_root(comm, root);
  const RootOptions options{.root = root};
  Space space;
  Sent sent;
  if (comm.rank == root) {
    space = incoming(recvbuf, recvcount * comm.size(), recvtype);
    if (sendbuf == MPI_IN_PLACE) {
      const Datatype& type = type_of(recvtype);
      if (space.copy == nullptr) {
        return run(
            how,
            comm,
            [&] { comm.net->gather(space.view(), options); },
            [&] { return comm.net->gather_async(space.view(), options); },
            {});
      }
      sent = outgoing(at(recvbuf, root * recvcount * type.extent()), recvcount, type);
    }
  }
  if (comm.rank != root || sendbuf != MPI_IN_PLACE) {
    sent = outgoing(sendbuf, sendcount, type_of(sendtype));
  }
  const ArrayView out = comm.rank == root ? space.view() : ArrayView();
  return run(
      how,
      comm,
      [&] { comm.net->gather(sent.view(), out, options); },
      [&] { return comm.net->gather_async(sent.view(), out, options); },
      taking(sent, space));
}

Pending Scatter(How how,
                const void* sendbuf,
                MPI_Count sendcount,
                MPI_Datatype sendtype,
                void* recvbuf,
                MPI_Count recvcount,
                MPI_Datatype recvtype,
                int root,
                MPI_Comm handle) {
  Comm& comm = comm_of(handle);
  if (comm.is_inter()) {
    return inter_scatter(
        comm, equal(sendbuf, sendcount, sendtype), {recvbuf, recvcount, recvtype}, root);
  }
  check_root(comm, root);
  const RootOptions options{.root = root};
  Sent sent;
  if (comm.rank == root) sent = outgoing(sendbuf, sendcount * comm.size(), type_of(sendtype));
  if (comm.rank == root && recvbuf == MPI_IN_PLACE) {
    const ArrayView all(
        const_cast<std::byte*>(sent.data), static_cast<std::size_t>(sent.bytes), DType::kUInt8);
    return run(
        how,
        comm,
        [&] { comm.net->scatter(all, options); },
        [&] { return comm.net->scatter_async(all, options); },
        keeping(sent));
  }
  const Space space = incoming(recvbuf, recvcount, recvtype);
  const ConstArrayView in = comm.rank == root ? sent.view() : ConstArrayView();
  return run(
      how,
      comm,
      [&] { comm.net->scatter(in, space.view(), options); },
      [&] { return comm.net->scatter_async(in, space.view(), options); },
      taking(sent, space));
}

Pending Alltoall(How how,
                 const void* sendbuf,
                 MPI_Count sendcount,
                 MPI_Datatype sendtype,
                 void* recvbuf,
                 MPI_Count recvcount,
                 MPI_Datatype recvtype,
                 MPI_Comm handle) {
  Comm& comm = comm_of(handle);
  if (comm.is_inter()) {
    return inter_exchange(
        comm, equal(sendbuf, sendcount, sendtype), equal(recvbuf, recvcount, recvtype));
  }
  const std::int64_t n = comm.size();
  const Space space = incoming(recvbuf, recvcount * n, recvtype);
  if (sendbuf == MPI_IN_PLACE) {
    if (space.copy != nullptr) type_of(recvtype).pack(recvbuf, recvcount * n, space.data);
    return run(
        how,
        comm,
        [&] { comm.net->all_to_all(space.view()); },
        [&] { return comm.net->all_to_all_async(space.view()); },
        taking({}, space));
  }
  const Sent sent = outgoing(sendbuf, sendcount * n, type_of(sendtype));
  return run(
      how,
      comm,
      [&] { comm.net->all_to_all(sent.view(), space.view()); },
      [&] { return comm.net->all_to_all_async(sent.view(), space.view()); },
      taking(sent, space));
}

}  // namespace hocket::mpi::call
