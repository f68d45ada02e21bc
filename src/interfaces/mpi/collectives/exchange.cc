#include "interfaces/mpi/collectives/exchange.h"

#include "hocket/operator.h"
#include "interfaces/mpi/collectives/operators.h"
#include "interfaces/mpi/failure.h"

namespace hocket::mpi {
namespace {

// Each exchange takes the next kSubtags tags, one for each subtag. Tags repeat after kTurns
// exchanges.
constexpr std::uint32_t kSubtags = 64, kTurns = 1U << 24;

}  // namespace

void Exchange::send(
    int peer, const void* buffer, std::int64_t count, MPI_Datatype type, int subtag) {
  if (peer == MPI_PROC_NULL) return;
  sends_.push_back({peer, subtag, outgoing(buffer, count, type_of(type)), {}});
}
void Exchange::recv(int peer, void* buffer, std::int64_t count, MPI_Datatype type, int subtag) {
  if (peer == MPI_PROC_NULL) return;
  receives_.push_back({peer, subtag, {}, incoming(buffer, count, type)});
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
  const auto first = static_cast<int>((comm_.exchanges++ % kTurns) * kSubtags);
  for (const One& one : receives_) {
    pending.others.push_back(comm_.inner->recv_async(
        one.space.view(), one.peer + comm_.first_peer(), {.tag = first + one.subtag}));
  }
  for (const One& one : sends_) {
    pending.others.push_back(comm_.inner->send_async(
        one.sent.view(), one.peer + comm_.first_peer(), {.tag = first + one.subtag}));
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

void send(Exchange& all, int peer, const Block& block) {
  all.send(peer, block.buffer, block.count, block.type);
}
void receive(Exchange& all, int peer, const Block& block) {
  all.recv(peer, const_cast<void*>(block.buffer), block.count, block.type);
}

const void* element(const void* buffer, std::int64_t index, MPI_Datatype type) {
  return at(buffer, index * type_of(type).extent());
}

}  // namespace

Blocks whole(const void* buffer, std::int64_t count, MPI_Datatype type) {
  return [=](std::size_t) { return Block{buffer, count, type}; };
}
Blocks equal(const void* buffer, std::int64_t count, MPI_Datatype type) {
  return [=](std::size_t i) {
    return Block{element(buffer, static_cast<std::int64_t>(i) * count, type), count, type};
  };
}
Blocks various(const void* buffer, Counts counts, Counts displs, MPI_Datatype type) {
  return [=](std::size_t i) { return Block{element(buffer, displs[i], type), counts[i], type}; };
}
Blocks typed(const void* buffer, Counts counts, Counts displs, const MPI_Datatype* types) {
  return [=](std::size_t i) { return Block{at(buffer, displs[i]), counts[i], types[i]}; };
}

Pending inter_exchange(Comm& comm, const Blocks& in, const Blocks& out) {
  Exchange all(comm);
  for (int i = 0; i < peers_of(comm); ++i) {
    send(all, i, in(static_cast<std::size_t>(i)));
    receive(all, i, out(static_cast<std::size_t>(i)));
  }
  return all.begin();
}

Pending inter_barrier(Comm& comm) {
  const Blocks nothing = whole(nullptr, 0, MPI_BYTE);
  return inter_exchange(comm, nothing, nothing);
}

Pending inter_gather(Comm& comm, const Block& in, const Blocks& out, int root) {
  Exchange all(comm);
  const Role own = part_of(comm, root);
  for (int i = 0; own == Role::kRoot && i < peers_of(comm); ++i) {
    receive(all, i, out(static_cast<std::size_t>(i)));
  }
  if (own == Role::kOther) send(all, root, in);
  return all.begin();
}

Pending inter_scatter(Comm& comm, const Blocks& in, const Block& out, int root) {
  Exchange all(comm);
  const Role own = part_of(comm, root);
  for (int i = 0; own == Role::kRoot && i < peers_of(comm); ++i) {
    send(all, i, in(static_cast<std::size_t>(i)));
  }
  if (own == Role::kOther) receive(all, root, out);
  return all.begin();
}

Pending inter_bcast(Comm& comm, const Block& inout, int root) {
  return inter_scatter(comm, whole(inout.buffer, inout.count, inout.type), inout, root);
}

// --- Reductions, in the order of the ranks -------------------------------------------------------

namespace {

// Receives packed elements from every peer, and combines and unpacks them at the end.
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
