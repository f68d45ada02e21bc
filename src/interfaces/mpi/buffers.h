// Converts a program's buffers to arrays of bytes, which hocket's calls take.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "hocket/array_view.h"
#include "interfaces/mpi/call_types.h"
#include "interfaces/mpi/process.h"

namespace hocket::mpi {

using Bytes = std::vector<std::byte>;

inline bool is_dense(const Datatype& type) noexcept {
  return type.is_contiguous() && (type.size() == type.extent() || type.size() == 0);
}
inline const std::byte* at(const void* buffer, std::int64_t offset) noexcept {
  return reinterpret_cast<const std::byte*>(reinterpret_cast<std::intptr_t>(buffer) + offset);
}
inline std::byte* at(void* buffer, std::int64_t offset) noexcept {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::intptr_t>(buffer) + offset);
}

// Returns the bytes of `count` elements. Throws if the count is negative, or the product does not
// fit.
std::int64_t bytes_of(const Datatype& type, std::int64_t count);

// Throws if the buffer is MPI_IN_PLACE, or null although it may not be MPI_BOTTOM. MPI_BOTTOM is
// null. It is allowed only with types whose displacements are absolute addresses.
void require_buffer(const void* buffer, bool may_be_bottom);

// Data to send: the program's memory if it is contiguous, else a packed copy. A value; its copies
// share the packed memory.
struct Sent {
  const std::byte* data = nullptr;
  std::int64_t bytes = 0;
  std::shared_ptr<Bytes> copy;

  ConstArrayView view() const noexcept {
    return {data, static_cast<std::size_t>(bytes), DType::kUInt8};
  }
};
Sent outgoing(const void* buffer, std::int64_t count, const Datatype& type);

// Memory to receive into: the program's memory if it is contiguous. Otherwise it is memory of
// hocket's own, which `take` unpacks.
struct Space {
  std::byte* data = nullptr;
  std::int64_t bytes = 0;
  std::shared_ptr<Bytes> copy;
  DatatypePtr type;
  void* user = nullptr;

  ArrayView view() const noexcept { return {data, static_cast<std::size_t>(bytes), DType::kUInt8}; }
  void take(std::uint64_t came) const {
    const std::int64_t kept = std::min(bytes, static_cast<std::int64_t>(came));
    if (copy != nullptr) type->unpack_part(copy->data(), 0, kept, user);
  }
};
Space incoming(void* buffer, std::int64_t count, MPI_Datatype type);

}  // namespace hocket::mpi
