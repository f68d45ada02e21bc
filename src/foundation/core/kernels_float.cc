// The kernels of float32, float64 and the complex numbers made of them.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "foundation/core/kernels_float.cc"
// clang-format off
#include "hwy/foreach_target.h"  // must come first

#include <complex>
#include "foundation/core/kernels-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace hocket::core::HWY_NAMESPACE {

ReduceKernel float32(ReduceOp op, Stores stores) {
  return real_kernel<NativeLanes<float>>(op, stores);
}
ReduceKernel float64(ReduceOp op, Stores stores) {
  return real_kernel<NativeLanes<double>>(op, stores);
}

// A complex number is two lanes. Sums and averages handle each lane separately.
template <typename T>
ReduceKernel complex_kernel(ReduceOp op, Stores stores) {
#if HWY_TARGET != HWY_SCALAR
  if (op == ReduceOp::kProduct) return kernel_for<NativeLanes<T, 2>, ComplexProduct>(stores);
#endif
  return one_of<NativeLanes<T, 2>, ReduceOp::kSum, ReduceOp::kAvg>(op, stores);
}
ReduceKernel complex64(ReduceOp op, Stores stores) { return complex_kernel<float>(op, stores); }
ReduceKernel complex128(ReduceOp op, Stores stores) { return complex_kernel<double>(op, stores); }

}  // namespace hocket::core::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hocket::core {

HWY_EXPORT(float32);
HWY_EXPORT(float64);
HWY_EXPORT(complex64);
HWY_EXPORT(complex128);

template <>
ReduceKernel vector_kernel<float>(ReduceOp op, Stores stores) {
  return HWY_DYNAMIC_DISPATCH(float32)(op, stores);
}
template <>
ReduceKernel vector_kernel<double>(ReduceOp op, Stores stores) {
  return HWY_DYNAMIC_DISPATCH(float64)(op, stores);
}
template <>
ReduceKernel vector_kernel<std::complex<float>>(ReduceOp op, Stores stores) {
  return HWY_DYNAMIC_DISPATCH(complex64)(op, stores);
}
template <>
ReduceKernel vector_kernel<std::complex<double>>(ReduceOp op, Stores stores) {
  return HWY_DYNAMIC_DISPATCH(complex128)(op, stores);
}

}  // namespace hocket::core
#endif
