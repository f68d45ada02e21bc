#include "interfaces/mpi/buffers.h"

#include "interfaces/mpi/failure.h"

namespace hocket::mpi {

std::int64_t bytes_of(const Datatype& type, std::int64_t count) {
  std::int64_t product = 0;
  if (count >= 0 && !__builtin_mul_overflow(count, type.size(), &product)) return product;
  require(count >= 0, MPI_ERR_COUNT, "count is negative");
  fail(MPI_ERR_COUNT, type.packed_size(count).refusal().text);
}

void require_buffer(const void* buffer, bool may_be_bottom) {
  require(buffer != nullptr || may_be_bottom, MPI_ERR_BUFFER, "buf is null");
  require(
      buffer != MPI_IN_PLACE,
      MPI_ERR_BUFFER,
      "buf is MPI_IN_PLACE; pass that as sendbuf of a collective, of one with a root at the root "
      "alone, or as recvbuf of a scatter at its root");
}

Sent outgoing(const void* buffer, std::int64_t count, const Datatype& type) {
  Sent made;
  made.bytes = bytes_of(type, count);
  if (made.bytes == 0) return made;
  const bool is_direct = is_dense(type) || (count == 1 && type.is_contiguous());
  require_buffer(buffer, !is_direct || type.true_lb() != 0);
  if (is_direct) {
    made.data = at(buffer, type.true_lb());
    return made;
  }
  made.copy = std::make_shared<Bytes>(static_cast<std::size_t>(made.bytes));
  type.pack(buffer, count, made.copy->data());
  made.data = made.copy->data();
  return made;
}

Space incoming(void* buffer, std::int64_t count, MPI_Datatype handle) {
  const Datatype& type = type_of(handle);
  Space made;
  made.bytes = bytes_of(type, count);
  if (made.bytes == 0) return made;
  const bool is_direct = is_dense(type) || (count == 1 && type.is_contiguous());
  require_buffer(buffer, !is_direct || type.true_lb() != 0);
  if (is_direct) {
    made.data = at(buffer, type.true_lb());
    return made;
  }
  made.copy = std::make_shared<Bytes>(static_cast<std::size_t>(made.bytes));
  made.data = made.copy->data();
  made.type = type_object(handle).type;
  made.user = buffer;
  return made;
}

}  // namespace hocket::mpi
