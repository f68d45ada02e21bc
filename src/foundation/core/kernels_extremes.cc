// The kernels of minima and maxima of integers.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "foundation/core/kernels_extremes.cc"
// clang-format off
#include "hwy/foreach_target.h"  // must come first
#include "foundation/core/kernels-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace hocket::core::HWY_NAMESPACE {

template <typename T>
ReduceKernel extremes(ReduceOp op, Stores stores) {
  return one_of<NativeLanes<T>, ReduceOp::kMin, ReduceOp::kMax>(op, stores);
}

ReduceKernel uint8_extremes(ReduceOp op, Stores stores) {
  return extremes<std::uint8_t>(op, stores);
}
ReduceKernel uint16_extremes(ReduceOp op, Stores stores) {
  return extremes<std::uint16_t>(op, stores);
}
ReduceKernel uint32_extremes(ReduceOp op, Stores stores) {
  return extremes<std::uint32_t>(op, stores);
}
ReduceKernel uint64_extremes(ReduceOp op, Stores stores) {
  return extremes<std::uint64_t>(op, stores);
}
ReduceKernel int8_extremes(ReduceOp op, Stores stores) { return extremes<std::int8_t>(op, stores); }
ReduceKernel int16_extremes(ReduceOp op, Stores stores) {
  return extremes<std::int16_t>(op, stores);
}
ReduceKernel int32_extremes(ReduceOp op, Stores stores) {
  return extremes<std::int32_t>(op, stores);
}
ReduceKernel int64_extremes(ReduceOp op, Stores stores) {
  return extremes<std::int64_t>(op, stores);
}

}  // namespace hocket::core::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hocket::core {

HWY_EXPORT(uint8_extremes);
HWY_EXPORT(uint16_extremes);
HWY_EXPORT(uint32_extremes);
HWY_EXPORT(uint64_extremes);
HWY_EXPORT(int8_extremes);
HWY_EXPORT(int16_extremes);
HWY_EXPORT(int32_extremes);
HWY_EXPORT(int64_extremes);

template <>
ReduceKernel extremes_kernel<std::uint8_t>(ReduceOp op, Stores stores) {
  return HWY_DYNAMIC_DISPATCH(uint8_extremes)(op, stores);
}

template <>
ReduceKernel extremes_kernel<std::uint16_t>(ReduceOp op, Stores stores) {
  return HWY_DYNAMIC_DISPATCH(uint16_extremes)(op, stores);
}

template <>
ReduceKernel extremes_kernel<std::uint32_t>(ReduceOp op, Stores stores) {
  return HWY_DYNAMIC_DISPATCH(uint32_extremes)(op, stores);
}

template <>
ReduceKernel extremes_kernel<std::uint64_t>(ReduceOp op, Stores stores) {
  return HWY_DYNAMIC_DISPATCH(uint64_extremes)(op, stores);
}

template <>
ReduceKernel extremes_kernel<std::int8_t>(ReduceOp op, Stores stores) {
  return HWY_DYNAMIC_DISPATCH(int8_extremes)(op, stores);
}

template <>
ReduceKernel extremes_kernel<std::int16_t>(ReduceOp op, Stores stores) {
  return HWY_DYNAMIC_DISPATCH(int16_extremes)(op, stores);
}

template <>
ReduceKernel extremes_kernel<std::int32_t>(ReduceOp op, Stores stores) {
  return HWY_DYNAMIC_DISPATCH(int32_extremes)(op, stores);
}

template <>
ReduceKernel extremes_kernel<std::int64_t>(ReduceOp op, Stores stores) {
  return HWY_DYNAMIC_DISPATCH(int64_extremes)(op, stores);
}

}  // namespace hocket::core
#endif
