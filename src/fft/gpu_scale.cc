#include "fft/gpu_scale.h"

#include <algorithm>

#include "cuda/stream.h"

namespace hocket::fft {
namespace {

constexpr unsigned kThreads = 256;
constexpr std::size_t kMostBlocks = 2048;

// Written in the driver's own language, which it compiles where it is loaded: hocket is built with
// no toolkit, too. Threads take every so-manieth number.
constexpr const char* kDoubles = R"(
.version 6.0
.target sm_60
.address_size 64
.visible .entry hocket_scale_double(.param .u64 data, .param .u64 count, .param .f64 factor)
{
  .reg .pred %is_over;
  .reg .u32 %block, %blocks, %threads, %thread;
  .reg .u64 %at, %step, %end, %base, %address, %wide;
  .reg .f64 %value, %by;
  ld.param.u64 %base, [data];
  ld.param.u64 %end, [count];
  ld.param.f64 %by, [factor];
  cvta.to.global.u64 %base, %base;
  mov.u32 %block, %ctaid.x;
  mov.u32 %blocks, %nctaid.x;
  mov.u32 %threads, %ntid.x;
  mov.u32 %thread, %tid.x;
  mul.wide.u32 %at, %block, %threads;
  cvt.u64.u32 %wide, %thread;
  add.u64 %at, %at, %wide;
  mul.wide.u32 %step, %blocks, %threads;
again:
  setp.ge.u64 %is_over, %at, %end;
  @%is_over bra done;
  shl.b64 %address, %at, 3;
  add.u64 %address, %address, %base;
  ld.global.f64 %value, [%address];
  mul.rn.f64 %value, %value, %by;
  st.global.f64 [%address], %value;
  add.u64 %at, %at, %step;
  bra again;
done:
  ret;
}
)";
constexpr const char* kFloats = R"(
.version 6.0
.target sm_60
.address_size 64
.visible .entry hocket_scale_float(.param .u64 data, .param .u64 count, .param .f32 factor)
{
  .reg .pred %is_over;
  .reg .u32 %block, %blocks, %threads, %thread;
  .reg .u64 %at, %step, %end, %base, %address, %wide;
  .reg .f32 %value, %by;
  ld.param.u64 %base, [data];
  ld.param.u64 %end, [count];
  ld.param.f32 %by, [factor];
  cvta.to.global.u64 %base, %base;
  mov.u32 %block, %ctaid.x;
  mov.u32 %blocks, %nctaid.x;
  mov.u32 %threads, %ntid.x;
  mov.u32 %thread, %tid.x;
  mul.wide.u32 %at, %block, %threads;
  cvt.u64.u32 %wide, %thread;
  add.u64 %at, %at, %wide;
  mul.wide.u32 %step, %blocks, %threads;
again:
  setp.ge.u64 %is_over, %at, %end;
  @%is_over bra done;
  shl.b64 %address, %at, 2;
  add.u64 %address, %address, %base;
  ld.global.f32 %value, [%address];
  mul.rn.f32 %value, %value, %by;
  st.global.f32 [%address], %value;
  add.u64 %at, %at, %step;
  bra again;
done:
  ret;
}
)";

}  // namespace

GpuScale::GpuScale(std::shared_ptr<const cuda::DeviceContext> device, bool is_double)
    : device_(std::move(device)), is_double_(is_double) {
  const cuda::Driver& driver = device_->driver();
  const cuda::OutsideCapture outside(driver);
  cuda::check(driver,
              driver.module_load_data(&module_, is_double_ ? kDoubles : kFloats),
              "load the kernel that scales");
  cuda::check(driver,
              driver.module_get_function(
                  &function_, module_, is_double_ ? "hocket_scale_double" : "hocket_scale_float"),
              "find the kernel that scales");
}

GpuScale::~GpuScale() {
  const cuda::DeviceGuard guard(*device_);
  if (guard.is_current()) device_->driver().module_unload(module_);
}

void GpuScale::run(void* data, std::size_t count, double factor, cuda::Stream stream) const {
  if (count == 0) return;
  float single = static_cast<float>(factor);
  void* arguments[] = {&data, &count, is_double_ ? static_cast<void*>(&factor) : &single};
  const cuda::LaunchConfig config{
      .grid_x = static_cast<unsigned>(std::min((count + kThreads - 1) / kThreads, kMostBlocks)),
      .block_x = kThreads,
      .stream = stream};
  const cuda::Driver& driver = device_->driver();
  cuda::check(driver,
              driver.launch_kernel_ex(&config, function_, arguments, nullptr),
              "launch the kernel that scales");
}

}  // namespace hocket::fft
