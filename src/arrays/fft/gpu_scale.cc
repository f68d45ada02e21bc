#include "arrays/fft/gpu_scale.h"

#include <algorithm>

namespace hocket::fft {
namespace {

constexpr unsigned kScaleThreads = 256;
constexpr std::size_t kMostBlocks = 2048;

// Each thread multiplies every n-th number, where n is the number of threads.
constexpr const char* kScale = R"(
.version 6.0
.target sm_60
.address_size 64
.visible .entry hocket_scale_NAME(.param .u64 data, .param .u64 count, .param TYPE factor)
{
  .reg .pred %is_over;
  .reg .u32 %block, %blocks, %threads, %thread;
  .reg .u64 %at, %step, %end, %base, %address, %wide;
  .reg TYPE %value, %by;
  ld.param.u64 %base, [data];
  ld.param.u64 %end, [count];
  ld.paramTYPE %by, [factor];
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
  shl.b64 %address, %at, SHIFT;
  add.u64 %address, %address, %base;
  ld.globalTYPE %value, [%address];
  mul.rnTYPE %value, %value, %by;
  st.globalTYPE [%address], %value;
  add.u64 %at, %at, %step;
  bra again;
done:
  ret;
}
)";

}  // namespace

GpuScale::GpuScale(std::shared_ptr<const cuda::DeviceContext> device, bool is_double)
    : is_double_(is_double),
      kernel_(std::move(device),
              cuda::with_words(kScale,
                               {{"NAME", is_double ? "double" : "float"},
                                {"TYPE", is_double ? ".f64" : ".f32"},
                                {"SHIFT", is_double ? "3" : "2"}}),
              is_double ? "hocket_scale_double" : "hocket_scale_float") {}

void GpuScale::run(void* data, std::size_t count, double factor, cuda::Stream stream) const {
  if (count == 0) return;
  float single = static_cast<float>(factor);
  void* arguments[] = {&data, &count, is_double_ ? static_cast<void*>(&factor) : &single};
  const auto blocks = std::min((count + kScaleThreads - 1) / kScaleThreads, kMostBlocks);
  kernel_.launch(
      {.grid_x = static_cast<unsigned>(blocks), .block_x = kScaleThreads, .stream = stream},
      arguments);
}

}  // namespace hocket::fft
