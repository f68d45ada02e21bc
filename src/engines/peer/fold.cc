#include "engines/peer/fold.h"

namespace hocket::engines::peer {
namespace {

Form form_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::kBool:
      return Form::kBool;
    case DType::kInt8:
      return Form::kInt8;
    case DType::kInt16:
      return Form::kInt16;
    case DType::kInt32:
      return Form::kInt32;
    case DType::kInt64:
      return Form::kInt64;
    case DType::kUInt8:
      return Form::kUInt8;
    case DType::kUInt16:
      return Form::kUInt16;
    case DType::kUInt32:
      return Form::kUInt32;
    case DType::kUInt64:
      return Form::kUInt64;
    case DType::kFloat16:
      return Form::kFloat16;
    case DType::kBFloat16:
      return Form::kBFloat16;
    case DType::kFloat32:
      return Form::kFloat32;
    case DType::kFloat64:
      return Form::kFloat64;
    case DType::kComplex64:
      return Form::kComplex64;
    case DType::kComplex128:
      return Form::kComplex128;
    case DType::kFloat8E4M3:
      return Form::kFloat8E4M3;
    case DType::kFloat8E5M2:
      return Form::kFloat8E5M2;
  }
  return Form::kBits;
}

// Returns the form of the unsigned integer that has the width of a signed integer. Returns other
// forms unchanged.
Form without_sign(Form form) noexcept {
  switch (form) {
    case Form::kInt8:
      return Form::kUInt8;
    case Form::kInt16:
      return Form::kUInt16;
    case Form::kInt32:
      return Form::kUInt32;
    case Form::kInt64:
      return Form::kUInt64;
    case Form::kBits:
    case Form::kBool:
    case Form::kUInt8:
    case Form::kUInt16:
    case Form::kUInt32:
    case Form::kUInt64:
    case Form::kFloat16:
    case Form::kBFloat16:
    case Form::kFloat32:
    case Form::kFloat64:
    case Form::kFloat8E4M3:
    case Form::kFloat8E5M2:
    case Form::kComplex64:
    case Form::kComplex128:
      break;
  }
  return form;
}

FoldCode fold_of_bool(ReduceOp op) noexcept {
  switch (op) {
    case ReduceOp::kProduct:
    case ReduceOp::kMin:
    case ReduceOp::kBitAnd:
      return {Form::kBool, FoldOperation::kAnd, 1};
    case ReduceOp::kBitXor:
      return {Form::kBool, FoldOperation::kXor, 1};
    case ReduceOp::kSum:
    case ReduceOp::kMax:
    case ReduceOp::kAvg:
    case ReduceOp::kBitOr:
      break;
  }
  return {Form::kBool, FoldOperation::kOr, 1};
}

}  // namespace

FoldCode fold_code(DType dtype, ReduceOp op, int ranks) noexcept {
  if (dtype == DType::kBool) return fold_of_bool(op);
  const Form form = form_of(dtype);
  const Form parts = form == Form::kComplex64    ? Form::kFloat32
                     : form == Form::kComplex128 ? Form::kFloat64
                                                 : form;
  switch (op) {
    case ReduceOp::kSum:
      return {without_sign(parts), FoldOperation::kSum, 1};
    case ReduceOp::kAvg:
      return {parts, FoldOperation::kSum, static_cast<std::uint16_t>(ranks)};
    case ReduceOp::kProduct:
      return {without_sign(form), FoldOperation::kProduct, 1};
    case ReduceOp::kMin:
      return {form, FoldOperation::kMin, 1};
    case ReduceOp::kMax:
      return {form, FoldOperation::kMax, 1};
    case ReduceOp::kBitAnd:
      return {Form::kBits, FoldOperation::kAnd, 1};
    case ReduceOp::kBitOr:
      return {Form::kBits, FoldOperation::kOr, 1};
    case ReduceOp::kBitXor:
      return {Form::kBits, FoldOperation::kXor, 1};
  }
  return {};
}

}  // namespace hocket::engines::peer
