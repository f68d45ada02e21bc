// Reduction operators: the ones that MPI predefines, and the program's.
#pragma once

#include <optional>

#include "hocket/operator.h"
#include "interfaces/mpi/buffers.h"

namespace hocket::mpi {

struct OwnReduction {
  ReduceOp op;
  DType dtype;
};
// Returns hocket's reduction for this operator and type. Absent: the operator has to be called on
// packed elements. Throws MPI_ERR_OP if the operator has no meaning on the type.
std::optional<OwnReduction> own_reduction(MPI_Op op, MPI_Datatype type);

// Computes inout = in op inout for unpacked elements.
void apply(MPI_Op op, MPI_Datatype type, const void* in, void* inout, std::int64_t count);

// Throws MPI_ERR_OP unless the operator is one of MPI's that has a meaning on the type. MPI_REPLACE
// and MPI_NO_OP have one on each.
void require_defined(MPI_Op op, const Datatype& type);
// Computes right = left op right for `count` packed elements. The operator is defined on the type.
void combine_packed(
    MPI_Op op, const Datatype& type, const std::byte* left, std::byte* right, std::int64_t count);

// An operator that hocket calls on packed elements. A resource; it must outlive the call.
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
