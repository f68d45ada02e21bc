// Operators: MPI's own and the program's.
#pragma once

#include <optional>

#include "hocket/operator.h"
#include "interfaces/mpi/buffers.h"

namespace hocket::mpi {

struct OwnReduction {
  ReduceOp op;
  DType dtype;
};
// Hocket's own for this operator and type; absent where it has to be called. Throws MPI_ERR_OP
// where the operator has no meaning on the type.
std::optional<OwnReduction> own_reduction(MPI_Op op, MPI_Datatype type);

// inout = in op inout, of elements as the program has them.
void apply(MPI_Op op, MPI_Datatype type, const void* in, void* inout, std::int64_t count);

// Throws MPI_ERR_OP unless the operator is one of MPI's that has a meaning on the type. MPI_REPLACE
// and MPI_NO_OP have one on each.
void require_defined(MPI_Op op, const Datatype& type);
// right = left op right, of `count` packed elements of a type on which the operator is defined.
void combine_packed(
    MPI_Op op, const Datatype& type, const std::byte* left, std::byte* right, std::int64_t count);

// An operator that is called on packed elements. A resource; must outlive the call.
class Called {
 public:
  Called(MPI_Op op, MPI_Datatype type);
  Operator as_operator() noexcept;

 private:
  void combine(std::byte* left, const std::byte* right, std::int64_t count);

  std::shared_ptr<Op> op_;
  MPI_Datatype handle_;
  DatatypePtr type_;
};

}  // namespace hocket::mpi
