// Collective calls that are made of messages: calls between neighbours, and calls between two
// groups.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "interfaces/mpi/buffers.h"

namespace hocket::mpi {

// The messages of one collective call, on the communicator Comm::inner. `begin` starts all of them.
// A value.
class Exchange {
 public:
  explicit Exchange(Comm& comm) : comm_(comm) {}

  // `peer` is a rank of the group, or of the remote group of an intercommunicator. MPI_PROC_NULL:
  // no message. `subtag`, from 0 to 63, tells apart several messages between the same two ranks.
  void send(int peer, const void* buffer, std::int64_t count, MPI_Datatype type, int subtag = 0);
  void recv(int peer, void* buffer, std::int64_t count, MPI_Datatype type, int subtag = 0);
  // Receives packed bytes into memory that the exchange owns, and returns its address.
  std::byte* recv_bytes(int peer, std::int64_t bytes);
  Pending begin(std::function<void(Outcome&)> last = {});

 private:
  struct One {
    int peer;
    int subtag;
    Sent sent;
    Space space;
  };
  Comm& comm_;
  std::vector<One> sends_, receives_;
};

// A part of the program's buffer that one message carries. A value.
struct Block {
  const void* buffer;  // written to if it is received
  std::int64_t count;
  MPI_Datatype type;
};
// Returns the part for, or from, a rank. It reads the program's counts and types when it is called.
using Blocks = std::function<Block(std::size_t rank)>;
// Gives the same buffer to every rank.
Blocks whole(const void* buffer, std::int64_t count, MPI_Datatype type);
// Gives each rank an equal part; the parts follow each other.
Blocks equal(const void* buffer, std::int64_t count, MPI_Datatype type);
// Give each rank a part of any size at any place. `various` has `displs` in extents of the type.
// `typed` has them in bytes, and a type for each part.
Blocks various(const void* buffer, Counts counts, Counts displs, MPI_Datatype type);
Blocks typed(const void* buffer, Counts counts, Counts displs, const MPI_Datatype* types);

// The calls between two groups. An argument that MPI ignores on a rank is not read there.
Pending inter_barrier(Comm&);
Pending inter_bcast(Comm&, const Block& inout, int root);
// Each rank sends to, and receives from, every rank of the other group: allgather and alltoall.
Pending inter_exchange(Comm&, const Blocks& in, const Blocks& out);
Pending inter_gather(Comm&, const Block& in, const Blocks& out, int root);
Pending inter_scatter(Comm&, const Blocks& in, const Block& out, int root);
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
