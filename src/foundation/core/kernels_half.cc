// The kernels of floats of 16 bits: float16 (half) and bfloat16 (brain).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "foundation/core/kernels_half.cc"
// clang-format off
#include "hwy/foreach_target.h"  // must come first
#include "foundation/core/kernels-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace hocket::core::HWY_NAMESPACE {

ReduceKernel half_kernel(ReduceOp op, Stores stores) { return real_kernel<Float16s>(op, stores); }
void half_widen(void* out, const void* in, std::size_t count) {
  widen_array<Float16s>(out, in, count);
}
void half_narrow(void* out, const void* in, std::size_t count, float divisor) {
  narrow_array<Float16s>(out, in, count, divisor);
}

ReduceKernel brain_kernel(ReduceOp op, Stores stores) {
  return real_kernel<BFloat16Pairs>(op, stores);
}
void brain_widen(void* out, const void* in, std::size_t count) {
  widen_array<BFloat16s>(out, in, count);
}
void brain_narrow(void* out, const void* in, std::size_t count, float divisor) {
  narrow_array<BFloat16s>(out, in, count, divisor);
}

}  // namespace hocket::core::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hocket::core {

HWY_EXPORT(half_kernel);
HWY_EXPORT(half_widen);
HWY_EXPORT(half_narrow);
HWY_EXPORT(brain_kernel);
HWY_EXPORT(brain_widen);
HWY_EXPORT(brain_narrow);

template <>
ReduceKernel vector_kernel<float16>(ReduceOp op, Stores stores) {
  return HWY_DYNAMIC_DISPATCH(half_kernel)(op, stores);
}
template <>
void widen_small<float16>(void* out, const void* in, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(half_widen)(out, in, count);
}
template <>
void narrow_small<float16>(void* out, const void* in, std::size_t count, float divisor) {
  HWY_DYNAMIC_DISPATCH(half_narrow)(out, in, count, divisor);
}

template <>
ReduceKernel vector_kernel<bfloat16>(ReduceOp op, Stores stores) {
  return HWY_DYNAMIC_DISPATCH(brain_kernel)(op, stores);
}
template <>
void widen_small<bfloat16>(void* out, const void* in, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(brain_widen)(out, in, count);
}
template <>
void narrow_small<bfloat16>(void* out, const void* in, std::size_t count, float divisor) {
  HWY_DYNAMIC_DISPATCH(brain_narrow)(out, in, count, divisor);
}

}  // namespace hocket::core
#endif
