#include "interfaces/mpi/buffers.h"

#include "interfaces/mpi/failure.h"

namespace hocket::mpi {

std::int64_t bytes_of(const Datatype& type, std::int64_t count) {
  std::int64_t product = 0;
  if (count >= 0 && !__builtin_mul_overflow(count, type.size(), &product)) return product;
  require(count >= 0, MPI_ERR_COUNT, "count is negative");
  fail(MPI_ERR_COUNT, type.packed_size(count).refusal().text);
}

Sent outgoing(const void* buffer, std::int64_t count, const Datatype& type) {
  Sent made;
  made.bytes = bytes_of(type, count);
  if (made.bytes == 0) return made;
  if (is_dense(type) || (count == 1 && type.is_contiguous())) {
    made.data = at(buffer, type.true_lb());
    require(made.data != nullptr, MPI_ERR_BUFFER, "buf is null");
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
  if (is_dense(type) || (count == 1 && type.is_contiguous())) {
    made.data = at(buffer, type.true_lb());
    require(made.data != nullptr, MPI_ERR_BUFFER, "buf is null");
    return made;
  }
  made.copy = std::make_shared<Bytes>(static_cast<std::size_t>(made.bytes));
  made.data = made.copy->data();
  made.type = type_object(handle).type;
  made.user = buffer;
  return made;
}

}  // namespace hocket::mpi
