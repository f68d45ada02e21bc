// The kernels of sums, products and bit operations of integers, signed or unsigned, and all kernels
// of bool.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "foundation/core/kernels_int.cc"
// clang-format off
#include "hwy/foreach_target.h"  // must come first
#include "foundation/core/kernels-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace hocket::core::HWY_NAMESPACE {

// The operations whose bits do not depend on the sign. They wrap around on overflow.
template <typename T>
ReduceKernel wrapping(ReduceOp op, Stores stores) {
  return one_of<NativeLanes<T>,
                ReduceOp::kSum,
                ReduceOp::kProduct,
                ReduceOp::kBitAnd,
                ReduceOp::kBitOr,
                ReduceOp::kBitXor>(op, stores);
}

ReduceKernel wrapping8(ReduceOp op, Stores stores) {
  if (op == ReduceOp::kProduct) return one_of<WideBytes, ReduceOp::kProduct>(op, stores);
  return one_of<NativeLanes<std::uint8_t>,
                ReduceOp::kSum,
                ReduceOp::kBitAnd,
                ReduceOp::kBitOr,
                ReduceOp::kBitXor>(op, stores);
}
ReduceKernel wrapping16(ReduceOp op, Stores stores) { return wrapping<std::uint16_t>(op, stores); }
ReduceKernel wrapping32(ReduceOp op, Stores stores) { return wrapping<std::uint32_t>(op, stores); }
ReduceKernel wrapping64(ReduceOp op, Stores stores) { return wrapping<std::uint64_t>(op, stores); }

// The operations of bool, as bit operations. False is less than true: sum and maximum are `or`,
// product and minimum are `and`.
ReduceKernel boolean(ReduceOp op, Stores stores) {
  const bool is_or = op == ReduceOp::kSum || op == ReduceOp::kMax;
  const bool is_and = op == ReduceOp::kProduct || op == ReduceOp::kMin;
  return one_of<Booleans, ReduceOp::kBitAnd, ReduceOp::kBitOr, ReduceOp::kBitXor>(
      is_or    ? ReduceOp::kBitOr
      : is_and ? ReduceOp::kBitAnd
               : op,
      stores);
}

}  // namespace hocket::core::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hocket::core {

HWY_EXPORT(wrapping8);
HWY_EXPORT(wrapping16);
HWY_EXPORT(wrapping32);
HWY_EXPORT(wrapping64);
HWY_EXPORT(boolean);

template <>
ReduceKernel wrapping_kernel<std::uint8_t>(ReduceOp op, Stores stores) {
  return HWY_DYNAMIC_DISPATCH(wrapping8)(op, stores);
}

template <>
ReduceKernel wrapping_kernel<std::uint16_t>(ReduceOp op, Stores stores) {
  return HWY_DYNAMIC_DISPATCH(wrapping16)(op, stores);
}

template <>
ReduceKernel wrapping_kernel<std::uint32_t>(ReduceOp op, Stores stores) {
  return HWY_DYNAMIC_DISPATCH(wrapping32)(op, stores);
}

template <>
ReduceKernel wrapping_kernel<std::uint64_t>(ReduceOp op, Stores stores) {
  return HWY_DYNAMIC_DISPATCH(wrapping64)(op, stores);
}

template <>
ReduceKernel vector_kernel<bool>(ReduceOp op, Stores stores) {
  return HWY_DYNAMIC_DISPATCH(boolean)(op, stores);
}

}  // namespace hocket::core
#endif
