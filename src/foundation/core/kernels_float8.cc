// The kernels of floats of 8 bits. Arithmetic limits their speed, not memory, so they use only
// ordinary stores.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "foundation/core/kernels_float8.cc"
// clang-format off
#include "hwy/foreach_target.h"  // must come first
#include "foundation/core/kernels-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace hocket::core::HWY_NAMESPACE {

ReduceKernel e4m3_kernel(ReduceOp op, Stores /*stores*/) {
  return real_kernel<SmallFloats<detail::Float8E4M3Format, std::uint8_t>>(op, Stores::kCached);
}
void e4m3_widen(void* out, const void* in, std::size_t count) {
  widen_array<SmallFloats<detail::Float8E4M3Format, std::uint8_t>>(out, in, count);
}
void e4m3_narrow(void* out, const void* in, std::size_t count, float divisor) {
  narrow_array<SmallFloats<detail::Float8E4M3Format, std::uint8_t>>(out, in, count, divisor);
}

ReduceKernel e5m2_kernel(ReduceOp op, Stores /*stores*/) {
  return real_kernel<SmallFloats<detail::Float8E5M2Format, std::uint8_t>>(op, Stores::kCached);
}
void e5m2_widen(void* out, const void* in, std::size_t count) {
  widen_array<SmallFloats<detail::Float8E5M2Format, std::uint8_t>>(out, in, count);
}
void e5m2_narrow(void* out, const void* in, std::size_t count, float divisor) {
  narrow_array<SmallFloats<detail::Float8E5M2Format, std::uint8_t>>(out, in, count, divisor);
}

}  // namespace hocket::core::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hocket::core {

HWY_EXPORT(e4m3_kernel);
HWY_EXPORT(e4m3_widen);
HWY_EXPORT(e4m3_narrow);
HWY_EXPORT(e5m2_kernel);
HWY_EXPORT(e5m2_widen);
HWY_EXPORT(e5m2_narrow);

template <>
ReduceKernel vector_kernel<float8_e4m3>(ReduceOp op, Stores stores) {
  return HWY_DYNAMIC_DISPATCH(e4m3_kernel)(op, stores);
}
template <>
void widen_small<float8_e4m3>(void* out, const void* in, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(e4m3_widen)(out, in, count);
}
template <>
void narrow_small<float8_e4m3>(void* out, const void* in, std::size_t count, float divisor) {
  HWY_DYNAMIC_DISPATCH(e4m3_narrow)(out, in, count, divisor);
}

template <>
ReduceKernel vector_kernel<float8_e5m2>(ReduceOp op, Stores stores) {
  return HWY_DYNAMIC_DISPATCH(e5m2_kernel)(op, stores);
}
template <>
void widen_small<float8_e5m2>(void* out, const void* in, std::size_t count) {
  HWY_DYNAMIC_DISPATCH(e5m2_widen)(out, in, count);
}
template <>
void narrow_small<float8_e5m2>(void* out, const void* in, std::size_t count, float divisor) {
  HWY_DYNAMIC_DISPATCH(e5m2_narrow)(out, in, count, divisor);
}

}  // namespace hocket::core
#endif
