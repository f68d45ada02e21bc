// Collectives whose parts differ in size or type from rank to rank.
#include <algorithm>

#include "interfaces/mpi/collectives/collective.h"
#include "interfaces/mpi/collectives/exchange.h"
#include "mpi_calls.h"

namespace hocket::mpi {
namespace {

// A part for each rank, as hocket's v-forms take them. A resource; packed parts are shared.
struct PartsOf {
  std::byte* data = nullptr;
  std::size_t bytes = 0;  // up to the end of the last one
  std::vector<std::size_t> counts, displacements;
  std::shared_ptr<Bytes> copy;

  Parts parts() const noexcept { return {counts, displacements}; }
  ConstArrayView in() const noexcept { return {data, bytes, DType::kUInt8}; }
  ArrayView out() const noexcept { return {data, bytes, DType::kUInt8}; }
};

// The place of each rank's part in the program's buffer. A value.
struct Described {
  void* buffer = nullptr;
  const Counts* counts = nullptr;
  const Counts* displacements = nullptr;  // in extents; in bytes for w-forms
  MPI_Datatype type{};
  const MPI_Datatype* types = nullptr;  // only for w-forms

  MPI_Datatype type_at(std::size_t i) const { return types != nullptr ? types[i] : type; }
  std::byte* place(std::size_t i) const {
    const std::int64_t unit = types != nullptr ? 1 : type_of(type).extent();
    return at(buffer, (*displacements)[i] * unit);
  }
};

bool lies_ready(const Described& d, std::size_t n) {
  if (d.types != nullptr || !is_dense(type_of(d.type)) || type_of(d.type).true_lb() != 0) {
    return false;
  }
  for (std::size_t i = 0; i < n; ++i) {
    if ((*d.displacements)[i] < 0) return false;
  }
  return true;
}

std::shared_ptr<PartsOf> lay_out(const Described& d, std::size_t n) {
  auto made = std::make_shared<PartsOf>();
  const bool ready = lies_ready(d, n);
  for (std::size_t i = 0; i < n; ++i) {
    const Datatype& type = type_of(d.type_at(i));
    const auto bytes = static_cast<std::size_t>(bytes_of(type, (*d.counts)[i]));
    const std::size_t at_byte =
        ready ? static_cast<std::size_t>((*d.displacements)[i] * type.size()) : made->bytes;
    made->counts.push_back(bytes);
    made->displacements.push_back(bytes == 0 ? 0 : at_byte);
    if (bytes != 0) made->bytes = std::max(made->bytes, at_byte + bytes);
  }
  if (made->bytes != 0) require_buffer(d.buffer, !ready);
  if (ready) {
    made->data = static_cast<std::byte*>(d.buffer);
  } else {
    made->copy = std::make_shared<Bytes>(made->bytes);
    made->data = made->copy->data();
  }
  return made;
}

std::shared_ptr<PartsOf> gather_parts(const Described& d, std::size_t n) {
  auto made = lay_out(d, n);
  if (made->copy == nullptr) return made;
  for (std::size_t i = 0; i < n; ++i) {
    if (made->counts[i] == 0) continue;
    type_of(d.type_at(i)).pack(d.place(i), (*d.counts)[i], made->data + made->displacements[i]);
  }
  return made;
}

// Returns a packed copy of this rank's part, because the call overwrites the part.
Sent sent_in_place(const Described& d, const PartsOf& out, std::size_t own) {
  Sent sent;
  sent.copy = std::make_shared<Bytes>(out.counts[own]);
  sent.data = sent.copy->data();
  sent.bytes = static_cast<std::int64_t>(sent.copy->size());
  if (sent.bytes != 0) type_of(d.type).pack(d.place(own), (*d.counts)[own], sent.copy->data());
  return sent;
}

// Returns a function that unpacks the received parts, except the part of rank `skip`.
Finish spread(std::shared_ptr<PartsOf> made,
              Described d,
              std::size_t n,
              Counts counts,
              Counts displacements,
              int skip = -1) {
  if (made->copy == nullptr) return [made](Outcome&) {};
  std::vector<DatatypePtr> types;
  std::vector<std::pair<std::byte*, std::int64_t>> places;
  d.counts = &counts;
  d.displacements = &displacements;
  for (std::size_t i = 0; i < n; ++i) {
    types.push_back(type_object(d.type_at(i)).type);
    places.emplace_back(d.place(i), counts[i]);
  }
  return [made, types = std::move(types), places = std::move(places), skip](Outcome&) {
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (static_cast<int>(i) == skip || made->counts[i] == 0) continue;
      types[i]->unpack(made->data + made->displacements[i], places[i].second, places[i].first);
    }
  };
}

}  // namespace
}  // namespace hocket::mpi

namespace hocket::mpi::call {

Pending Allgatherv(How how,
                   const void* sendbuf,
                   MPI_Count sendcount,
                   MPI_Datatype sendtype,
                   void* recvbuf,
                   Counts recvcounts,
                   Counts displs,
                   MPI_Datatype recvtype,
                   MPI_Comm handle) {
  Comm& comm = comm_of(handle);
  if (comm.is_inter()) {
    return inter_exchange(
        comm, whole(sendbuf, sendcount, sendtype), various(recvbuf, recvcounts, displs, recvtype));
  }
  const std::size_t n = places(comm);
  const Described d{recvbuf, &recvcounts, &displs, recvtype};
  const auto out = lay_out(d, n);
  const Sent sent = sendbuf == MPI_IN_PLACE
                        ? sent_in_place(d, *out, static_cast<std::size_t>(comm.rank))
                        : outgoing(sendbuf, sendcount, type_of(sendtype));
  return run(
      how,
      comm,
      [&] { comm.net->all_gather_v(sent.view(), out->out(), out->parts()); },
      [&] { return comm.net->all_gather_v_async(sent.view(), out->out(), out->parts()); },
      both(keeping(sent), spread(out, d, n, recvcounts, displs)));
}

Pending Gatherv(How how,
                const void* sendbuf,
                MPI_Count sendcount,
                MPI_Datatype sendtype,
                void* recvbuf,
                Counts recvcounts,
                Counts displs,
                MPI_Datatype recvtype,
                int root,
                MPI_Comm handle) {
  Comm& comm = comm_of(handle);
  if (comm.is_inter()) {
    return inter_gather(
        comm, {sendbuf, sendcount, sendtype}, various(recvbuf, recvcounts, displs, recvtype), root);
  }
  check_root(comm, root);
  const RootOptions options{.root = root};
  const std::size_t n = places(comm);
  if (comm.rank != root) {
    const Sent sent = outgoing(sendbuf, sendcount, type_of(sendtype));
    // Only the root's counts matter. Each other rank passes only its own count, because without
    // counts all ranks would gather them first.
    auto own = std::make_shared<std::vector<std::size_t>>(n);
    (*own)[static_cast<std::size_t>(comm.rank)] = static_cast<std::size_t>(sent.bytes);
    const Parts parts{.counts = *own};
    return run(
        how,
        comm,
        [&] { comm.net->gather_v(sent.view(), ArrayView(), parts, options); },
        [&] { return comm.net->gather_v_async(sent.view(), ArrayView(), parts, options); },
        [own, kept = sent.copy](Outcome&) {});
  }
  const Described d{recvbuf, &recvcounts, &displs, recvtype};
  const auto out = lay_out(d, n);
  const Sent sent = sendbuf == MPI_IN_PLACE ? sent_in_place(d, *out, static_cast<std::size_t>(root))
                                            : outgoing(sendbuf, sendcount, type_of(sendtype));
  return run(
      how,
      comm,
      [&] { comm.net->gather_v(sent.view(), out->out(), out->parts(), options); },
      [&] { return comm.net->gather_v_async(sent.view(), out->out(), out->parts(), options); },
      both(keeping(sent), spread(out, d, n, recvcounts, displs)));
}

Pending Scatterv(How how,
                 const void* sendbuf,
                 Counts sendcounts,
                 Counts displs,
                 MPI_Datatype sendtype,
                 void* recvbuf,
                 MPI_Count recvcount,
                 MPI_Datatype recvtype,
                 int root,
                 MPI_Comm handle) {
  Comm& comm = comm_of(handle);
  if (comm.is_inter()) {
    return inter_scatter(
        comm, various(sendbuf, sendcounts, displs, sendtype), {recvbuf, recvcount, recvtype}, root);
  }
  check_root(comm, root);
  const RootOptions options{.root = root};
  if (comm.rank != root) {
    const Space space = incoming(recvbuf, recvcount, recvtype);
    return run(
        how,
        comm,
        [&] { comm.net->scatter_v(ConstArrayView(), {}, space.view(), options); },
        [&] { return comm.net->scatter_v_async(ConstArrayView(), {}, space.view(), options); },
        taking({}, space));
  }
  const Described d{const_cast<void*>(sendbuf), &sendcounts, &displs, sendtype};
  const auto in = gather_parts(d, places(comm));
  Space space;
  if (recvbuf == MPI_IN_PLACE) {
    space.copy = std::make_shared<Bytes>(in->counts[static_cast<std::size_t>(root)]);
    space.data = space.copy->data();
    space.bytes = static_cast<std::int64_t>(space.copy->size());
    const auto kept = space.copy;
    return run(
        how,
        comm,
        [&] { comm.net->scatter_v(in->in(), in->parts(), space.view(), options); },
        [&] { return comm.net->scatter_v_async(in->in(), in->parts(), space.view(), options); },
        [in, kept](Outcome&) {});
  }
  space = incoming(recvbuf, recvcount, recvtype);
  return run(
      how,
      comm,
      [&] { comm.net->scatter_v(in->in(), in->parts(), space.view(), options); },
      [&] { return comm.net->scatter_v_async(in->in(), in->parts(), space.view(), options); },
      both([in](Outcome&) {}, taking({}, space)));
}

namespace {
Pending all_to_all(How how,
                   Comm& comm,
                   Described send,
                   Described recv,
                   Counts sendcounts,
                   Counts sdispls,
                   Counts recvcounts,
                   Counts rdispls) {
  const std::size_t n = places(comm);
  send.counts = &sendcounts;
  send.displacements = &sdispls;
  recv.counts = &recvcounts;
  recv.displacements = &rdispls;
  std::shared_ptr<PartsOf> in;
  const auto out = lay_out(recv, n);
  if (send.buffer == MPI_IN_PLACE) {
    in = std::make_shared<PartsOf>(*gather_parts(recv, n));
    if (in->copy == nullptr) {
      in->copy = std::make_shared<Bytes>(in->data, in->data + in->bytes);
      in->data = in->copy->data();
    }
  } else {
    in = gather_parts(send, n);
  }
  return run(
      how,
      comm,
      [&] { comm.net->all_to_all_v(in->in(), in->parts(), out->out(), out->parts()); },
      [&] { return comm.net->all_to_all_v_async(in->in(), in->parts(), out->out(), out->parts()); },
      both([in](Outcome&) {}, spread(out, recv, n, recvcounts, rdispls)));
}
}  // namespace

Pending Alltoallv(How how,
                  const void* sendbuf,
                  Counts sendcounts,
                  Counts sdispls,
                  MPI_Datatype sendtype,
                  void* recvbuf,
                  Counts recvcounts,
                  Counts rdispls,
                  MPI_Datatype recvtype,
                  MPI_Comm handle) {
  Comm& comm = comm_of(handle);
  if (comm.is_inter()) {
    return inter_exchange(comm,
                          various(sendbuf, sendcounts, sdispls, sendtype),
                          various(recvbuf, recvcounts, rdispls, recvtype));
  }
  return all_to_all(how,
                    comm,
                    {const_cast<void*>(sendbuf), nullptr, nullptr, sendtype},
                    {recvbuf, nullptr, nullptr, recvtype},
                    sendcounts,
                    sdispls,
                    recvcounts,
                    rdispls);
}
Pending Alltoallw(How how,
                  const void* sendbuf,
                  Counts sendcounts,
                  Counts sdispls,
                  const MPI_Datatype* sendtypes,
                  void* recvbuf,
                  Counts recvcounts,
                  Counts rdispls,
                  const MPI_Datatype* recvtypes,
                  MPI_Comm handle) {
  Comm& comm = comm_of(handle);
  if (comm.is_inter()) {
    return inter_exchange(comm,
                          typed(sendbuf, sendcounts, sdispls, sendtypes),
                          typed(recvbuf, recvcounts, rdispls, recvtypes));
  }
  return all_to_all(how,
                    comm,
                    {const_cast<void*>(sendbuf), nullptr, nullptr, {}, sendtypes},
                    {recvbuf, nullptr, nullptr, {}, recvtypes},
                    sendcounts,
                    sdispls,
                    recvcounts,
                    rdispls);
}

}  // namespace hocket::mpi::call
