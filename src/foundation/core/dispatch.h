// Turns a dtype or op that is known at run time into a template argument. (kernels.h selects the
// code for the processor.)
//
//     const std::size_t bytes = dispatch(dtype, []<typename T>() { return sizeof(T); });
//     dispatch(op, [&]<ReduceOp kOp>() { ... });
#pragma once

#include <complex>
#include <cstdint>

#include "hocket/error.h"
#include "hocket/types.h"

namespace hocket::core {

// Calls `function` with the element type of `dtype` as its template argument.
template <typename Function>
decltype(auto) dispatch(DType dtype, Function&& function) {
  switch (dtype) {
    case DType::kBool:
      return function.template operator()<bool>();
    case DType::kInt8:
      return function.template operator()<std::int8_t>();
    case DType::kInt16:
      return function.template operator()<std::int16_t>();
    case DType::kInt32:
      return function.template operator()<std::int32_t>();
    case DType::kInt64:
      return function.template operator()<std::int64_t>();
    case DType::kUInt8:
      return function.template operator()<std::uint8_t>();
    case DType::kUInt16:
      return function.template operator()<std::uint16_t>();
    case DType::kUInt32:
      return function.template operator()<std::uint32_t>();
    case DType::kUInt64:
      return function.template operator()<std::uint64_t>();
    case DType::kFloat16:
      return function.template operator()<float16>();
    case DType::kBFloat16:
      return function.template operator()<bfloat16>();
    case DType::kFloat32:
      return function.template operator()<float>();
    case DType::kFloat64:
      return function.template operator()<double>();
    case DType::kComplex64:
      return function.template operator()<std::complex<float>>();
    case DType::kComplex128:
      return function.template operator()<std::complex<double>>();
    case DType::kFloat8E4M3:
      return function.template operator()<float8_e4m3>();
    case DType::kFloat8E5M2:
      return function.template operator()<float8_e5m2>();
  }
  throw InvalidArgument("the value given as dtype is none of hocket::DType");
}

// Calls `function` with `op` as its template argument.
template <typename Function>
decltype(auto) dispatch(ReduceOp op, Function&& function) {
  switch (op) {
    case ReduceOp::kSum:
      return function.template operator()<ReduceOp::kSum>();
    case ReduceOp::kProduct:
      return function.template operator()<ReduceOp::kProduct>();
    case ReduceOp::kMin:
      return function.template operator()<ReduceOp::kMin>();
    case ReduceOp::kMax:
      return function.template operator()<ReduceOp::kMax>();
    case ReduceOp::kAvg:
      return function.template operator()<ReduceOp::kAvg>();
    case ReduceOp::kBitAnd:
      return function.template operator()<ReduceOp::kBitAnd>();
    case ReduceOp::kBitOr:
      return function.template operator()<ReduceOp::kBitOr>();
    case ReduceOp::kBitXor:
      return function.template operator()<ReduceOp::kBitXor>();
  }
  throw InvalidArgument("the value given as op is none of hocket::ReduceOp");
}

}  // namespace hocket::core
