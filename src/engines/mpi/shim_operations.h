// The part of a shim that knows element types and operators. Only shim.cc includes it.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "engines/mpi/abi.h"
#include "hocket/types.h"

namespace hocket::engines::mpi {
namespace {

// The function that combines elements. It is global, because MPI passes no user data to an
// operation.
Fold fold_of_hocket = nullptr;

// The user function of an MPI operation, one for each dtype and operator.
template <int Dtype, int Op>
void fold(void* in, void* inout, int* count, MPI_Datatype* /*type*/) {
  fold_of_hocket(Dtype, Op, inout, in, static_cast<std::size_t>(*count));
}

using UserFunction = void (*)(void*, void*, int*, MPI_Datatype*);
template <int Dtype, int... Ops>
constexpr std::array<UserFunction, sizeof...(Ops)> functions_of(
    std::integer_sequence<int, Ops...>) {
  return {&fold<Dtype, Ops>...};
}
template <int... Dtypes>
constexpr auto all_functions(std::integer_sequence<int, Dtypes...>) {
  return std::array{functions_of<Dtypes>(std::make_integer_sequence<int, kReduceOpCount>{})...};
}
constexpr auto kFunctions = all_functions(std::make_integer_sequence<int, kDTypeCount>{});

// Returns an MPI type of this size. It is for elements that MPI only moves, or that hocket's
// function combines.
MPI_Datatype type_of_size(std::size_t bytes) {
  if (bytes == 1) return MPI_UINT8_T;
  if (bytes == 2) return MPI_UINT16_T;
  if (bytes == 4) return MPI_UINT32_T;
  return bytes == 8 ? MPI_UINT64_T : MPI_C_DOUBLE_COMPLEX;
}

// Returns the MPI type of a dtype for which MPI's own sums are used, or MPI_DATATYPE_NULL.
MPI_Datatype native_type(DType dtype) {
  switch (dtype) {
    case DType::kInt32:
      return MPI_INT32_T;
    case DType::kInt64:
      return MPI_INT64_T;
    case DType::kUInt32:
      return MPI_UINT32_T;
    case DType::kUInt64:
      return MPI_UINT64_T;
    case DType::kFloat32:
      return MPI_FLOAT;
    case DType::kFloat64:
      return MPI_DOUBLE;
    case DType::kComplex64:
      return MPI_C_FLOAT_COMPLEX;
    case DType::kComplex128:
      return MPI_C_DOUBLE_COMPLEX;
    case DType::kBool:
    case DType::kInt8:
    case DType::kInt16:
    case DType::kUInt8:
    case DType::kUInt16:
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat8E4M3:
    case DType::kFloat8E5M2:
      break;
  }
  return MPI_DATATYPE_NULL;
}

// Returns MPI's operation if its results are known to equal hocket's results, or MPI_OP_NULL. All
// others differ in some MPI. Open MPI 4.1 saturates sums of 8-bit and 16-bit integers. MPICH 4.0
// compares uint8 as signed. Minima and maxima of floats may drop a NaN. Products of complex numbers
// may turn a NaN into a number.
MPI_Op native_op(DType dtype, ReduceOp op) {
  if (native_type(dtype) == MPI_DATATYPE_NULL) return MPI_OP_NULL;
  const bool is_complex = dtype == DType::kComplex64 || dtype == DType::kComplex128;
  if (op == ReduceOp::kSum) return MPI_SUM;
  return op == ReduceOp::kProduct && !is_complex ? MPI_PROD : MPI_OP_NULL;
}

struct MpiOperation {
  MPI_Datatype type;
  MPI_Op op;
};

// Finds the type and operation of a call. Makes an operation with hocket's function if MPI has none
// with the same results. Returns MPI's error code.
int operation_of(const ShimCall& call, MpiOperation& found) {
  const auto dtype = static_cast<DType>(call.dtype);
  const auto op = static_cast<ReduceOp>(call.op);
  found = {native_type(dtype), native_op(dtype, op)};
  if (found.op != MPI_OP_NULL) return MPI_SUCCESS;
  static std::array<std::array<MPI_Op, kReduceOpCount>, kDTypeCount> made;
  static bool is_filled = false;
  if (!is_filled) {
    for (auto& row : made) row.fill(MPI_OP_NULL);
    is_filled = true;
  }
  found.type = type_of_size(size_of(dtype));
  MPI_Op& cached = made[static_cast<std::size_t>(call.dtype)][static_cast<std::size_t>(call.op)];
  int code = MPI_SUCCESS;
  if (cached == MPI_OP_NULL) {
    const auto function =
        kFunctions[static_cast<std::size_t>(call.dtype)][static_cast<std::size_t>(call.op)];
    code = MPI_Op_create(function, 1, &cached);
  }
  found.op = cached;
  return code;
}

}  // namespace
}  // namespace hocket::engines::mpi
