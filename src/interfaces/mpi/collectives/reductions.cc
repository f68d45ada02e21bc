// Reductions within one group.
#include "hocket/operator.h"
#include "interfaces/mpi/collectives/collective.h"
#include "interfaces/mpi/collectives/exchange.h"
#include "interfaces/mpi/collectives/operators.h"
#include "mpi_calls.h"

namespace hocket::mpi::call {

namespace {

// A reduction of `count` elements, by hocket's reduction or by an operator that is called.
struct Reduction {
  std::optional<ReduceOp> own;
  DType dtype = DType::kUInt8;
  std::size_t unit = 1;  // number of dtype's numbers that make one element
  std::shared_ptr<Called> called;
  Operator op;

  Reduction(MPI_Op handle, MPI_Datatype type) {
    if (const auto found = own_reduction(handle, type)) {
      own = found->op;
      dtype = found->dtype;
      return;
    }
    called = std::make_shared<Called>(handle, type);
    unit = static_cast<std::size_t>(type_of(type).size());
    op = called->as_operator();
  }
};

// The arrays of a reduction, packed if necessary. A value.
struct Reduced {
  Sent sent;
  Space space;
  ConstArrayView in;
  ArrayView out;
};

Reduced arrays(const Reduction& r,
               const void* sendbuf,
               std::int64_t in_count,
               void* recvbuf,
               std::int64_t out_count,
               MPI_Datatype type,
               bool has_out) {
  Reduced made;
  const std::size_t element = size_of(r.dtype);
  if (has_out) {
    made.space = incoming(recvbuf, out_count, type);
    made.out =
        ArrayView(made.space.data, static_cast<std::size_t>(made.space.bytes) / element, r.dtype);
  }
  const bool is_in_place = has_out && sendbuf == MPI_IN_PLACE;
  made.sent = outgoing(is_in_place ? recvbuf : sendbuf, in_count, type_of(type));
  made.in =
      ConstArrayView(made.sent.data, static_cast<std::size_t>(made.sent.bytes) / element, r.dtype);
  return made;
}

Finish ending(const Reduction& r, const Reduced& a) {
  Finish take = taking(a.sent, a.space);
  if (r.called == nullptr) return take;
  return both([kept = r.called](Outcome&) {}, std::move(take));
}

// The four forms of one of hocket's verbs: blocking and asynchronous, each with hocket's reduction
// and with an operator that is called.
struct Verb {
  void (Communicator::*own)(ConstArrayView, ArrayView, const ReduceOptions&);
  Work (Communicator::*own_async)(BorrowedView, ArrayView, const ReduceOptions&);
  void (*called)(Communicator&, ConstArrayView, ArrayView, const Operator&, const OperatorOptions&);
  Work (*called_async)(
      Communicator&, BorrowedView, ArrayView, const Operator&, const OperatorOptions&);
};
constexpr Verb kAllReduce{&Communicator::all_reduce,
                          &Communicator::all_reduce_async,
                          &hocket::all_reduce,
                          &hocket::all_reduce_async};
constexpr Verb kScan{
    &Communicator::scan, &Communicator::scan_async, &hocket::scan, &hocket::scan_async};
constexpr Verb kExscan{
    &Communicator::exscan, &Communicator::exscan_async, &hocket::exscan, &hocket::exscan_async};
constexpr Verb kReduceScatter{&Communicator::reduce_scatter,
                              &Communicator::reduce_scatter_async,
                              &hocket::reduce_scatter,
                              &hocket::reduce_scatter_async};

Pending reduce(How how, Comm& comm, const Verb& verb, const Reduction& r, const Reduced& a) {
  Communicator& net = *comm.net;
  return run(
      how,
      comm,
      [&] {
        if (r.own) {
          (net.*verb.own)(a.in, a.out, {.op = *r.own});
        } else {
          verb.called(net, a.in, a.out, r.op, {});
        }
      },
      [&] {
        return r.own ? (net.*verb.own_async)(a.in, a.out, {.op = *r.own})
                     : verb.called_async(net, a.in, a.out, r.op, {});
      },
      ending(r, a));
}

}  // namespace

Pending Allreduce(How how,
                  const void* sendbuf,
                  void* recvbuf,
                  MPI_Count count,
                  MPI_Datatype datatype,
                  MPI_Op op,
                  MPI_Comm handle) {
  Comm& comm = comm_of(handle);
  if (comm.is_inter()) return inter_allreduce(comm, sendbuf, recvbuf, count, datatype, op);
  const Reduction r(op, datatype);
  return reduce(
      how, comm, kAllReduce, r, arrays(r, sendbuf, count, recvbuf, count, datatype, true));
}
Pending Scan(How how,
             const void* sendbuf,
             void* recvbuf,
             MPI_Count count,
             MPI_Datatype datatype,
             MPI_Op op,
             MPI_Comm handle) {
  Comm& comm = comm_of(handle);
  require(!comm.is_inter(), MPI_ERR_COMM, "comm has two groups");
  const Reduction r(op, datatype);
  return reduce(how, comm, kScan, r, arrays(r, sendbuf, count, recvbuf, count, datatype, true));
}
Pending Exscan(How how,
               const void* sendbuf,
               void* recvbuf,
               MPI_Count count,
               MPI_Datatype datatype,
               MPI_Op op,
               MPI_Comm handle) {
  Comm& comm = comm_of(handle);
  require(!comm.is_inter(), MPI_ERR_COMM, "comm has two groups");
  const Reduction r(op, datatype);
  // Rank 0 gets no result. Its `out` is dropped only now, because a call in place has its input
  // there.
  Reduced a = arrays(r, sendbuf, count, recvbuf, count, datatype, true);
  if (comm.rank == 0) {
    a.out = ArrayView();
    a.space = {};
  }
  return reduce(how, comm, kExscan, r, a);
}

Pending Reduce(How how,
               const void* sendbuf,
               void* recvbuf,
               MPI_Count count,
               MPI_Datatype datatype,
               MPI_Op op,
               int root,
               MPI_Comm handle) {
  Comm& comm = comm_of(handle);
  if (comm.is_inter()) return inter_reduce(comm, sendbuf, recvbuf, count, datatype, op, root);
  check_root(comm, root);
  const Reduction r(op, datatype);
  const Reduced a = arrays(r, sendbuf, count, recvbuf, count, datatype, comm.rank == root);
  Communicator& net = *comm.net;
  return run(
      how,
      comm,
      [&] {
        if (r.own) {
          net.reduce(a.in, a.out, {.op = *r.own, .root = root});
        } else {
          hocket::reduce(net, a.in, a.out, r.op, {.root = root});
        }
      },
      [&] {
        return r.own ? net.reduce_async(a.in, a.out, {.op = *r.own, .root = root})
                     : hocket::reduce_async(net, a.in, a.out, r.op, {.root = root});
      },
      ending(r, a));
}

Pending Reduce_scatter_block(How how,
                             const void* sendbuf,
                             void* recvbuf,
                             MPI_Count recvcount,
                             MPI_Datatype datatype,
                             MPI_Op op,
                             MPI_Comm handle) {
  Comm& comm = comm_of(handle);
  if (comm.is_inter()) {
    return inter_reduce_scatter(comm,
                                sendbuf,
                                recvbuf,
                                std::vector<std::int64_t>(comm.local->members.size(), recvcount),
                                datatype,
                                op);
  }
  const Reduction r(op, datatype);
  Reduced a = arrays(r, sendbuf, recvcount * comm.size(), recvbuf, recvcount, datatype, true);
  // In place, the result goes to the beginning of the input, where the part of rank 0 lies. So the
  // input is copied.
  if (sendbuf == MPI_IN_PLACE && a.sent.copy == nullptr) {
    a.sent.copy = std::make_shared<Bytes>(a.sent.data, a.sent.data + a.sent.bytes);
    a.in = ConstArrayView(a.sent.copy->data(), a.in.count(), r.dtype);
  }
  return reduce(how, comm, kReduceScatter, r, a);
}

Pending Reduce_scatter(How how,
                       const void* sendbuf,
                       void* recvbuf,
                       Counts recvcounts,
                       MPI_Datatype datatype,
                       MPI_Op op,
                       MPI_Comm handle) {
  Comm& comm = comm_of(handle);
  const std::vector<std::int64_t> counts = recvcounts.copy(comm.size());
  if (comm.is_inter()) return inter_reduce_scatter(comm, sendbuf, recvbuf, counts, datatype, op);
  // Every rank reduces the whole array and keeps its part. The parts differ in size, and hocket's
  // calls with operators take only equal parts.
  std::int64_t all = 0, before = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    require(counts[i] >= 0, MPI_ERR_COUNT, "recvcounts has a negative one");
    if (i < static_cast<std::size_t>(comm.rank)) before += counts[i];
    all += counts[i];
  }
  const Reduction r(op, datatype);
  const std::size_t element = size_of(r.dtype);
  const DatatypePtr type = type_object(datatype).type;
  const std::int64_t own = counts[static_cast<std::size_t>(comm.rank)];
  if (own > 0) require_buffer(recvbuf, !is_dense(*type));
  const void* const input = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
  Reduced a = arrays(r, input, all, nullptr, 0, datatype, false);
  auto result = std::make_shared<Bytes>(static_cast<std::size_t>(a.sent.bytes));
  a.out = ArrayView(result->data(), result->size() / element, r.dtype);
  const auto first = static_cast<std::size_t>(before * type->size());
  Pending pending = reduce(how, comm, kAllReduce, r, a);
  pending.finish = both(std::move(pending.finish), [result, type, own, first, recvbuf](Outcome&) {
    if (own > 0 && type->size() > 0) type->unpack(result->data() + first, own, recvbuf);
  });
  return pending;
}

void Reduce_local(
    const void* inbuf, void* inoutbuf, MPI_Count count, MPI_Datatype datatype, MPI_Op op) {
  apply(op, datatype, inbuf, inoutbuf, count);
}

}  // namespace hocket::mpi::call
