#include "arrays/fft/gpu_copy.h"

#include <string>

namespace hocket::fft {

using cuda::DevicePtr;

// The sizes of rows and planes, and the distances in bytes from one to the next.
struct GpuCopy::Planes {
  DevicePtr from, to;
  std::size_t width;
  Copy::Side rows, planes;
};

namespace {

constexpr std::size_t kWide = 16;
constexpr unsigned kCopyThreads = 256,
                   kEach = 4;  // numbers per thread; all are loaded before the first is stored
constexpr std::size_t kMost = std::size_t{1} << 31;  // numbers that one launch copies
// For rows of at least this many bytes, the driver's copy engines use another GPU's link fully.
constexpr std::size_t kLongRow = 4096;

// Numbers are counted row by row. Each thread finds the addresses of its numbers by division.
constexpr const char* kBegin = R"(
.version 6.0
.target sm_60
.address_size 64
.visible .entry hocket_box_BYTES(.param .u64 from, .param .u64 to, .param .u32 width,
  .param .u32 rows, .param .u32 total, .param .u64 from_row, .param .u64 to_row,
  .param .u64 from_plane, .param .u64 to_plane)
{
  .reg .pred %is_there<4>;
  .reg .u32 %i, %width, %rows, %total, %column, %row, %plane, %part;
  .reg .u64 %from, %to, %from_row, %to_row, %from_plane, %to_plane, %offset, %wide;
  .reg .u64 %source<4>, %target<4>;
  .reg .bBITS %a<4>, %b<4>;
  ld.param.u64 %from, [from];
  ld.param.u64 %to, [to];
  ld.param.u32 %width, [width];
  ld.param.u32 %rows, [rows];
  ld.param.u32 %total, [total];
  ld.param.u64 %from_row, [from_row];
  ld.param.u64 %to_row, [to_row];
  ld.param.u64 %from_plane, [from_plane];
  ld.param.u64 %to_plane, [to_plane];
  cvta.to.global.u64 %from, %from;
  cvta.to.global.u64 %to, %to;
  mov.u32 %i, %ctaid.x;
  mov.u32 %part, %ntid.x;
  mul.lo.u32 %i, %i, %part;
  shl.b32 %i, %i, 2;
  mov.u32 %part, %tid.x;
  add.u32 %i, %i, %part;
)";
constexpr const char* kPlace = R"(
  setp.lt.u32 %is_thereNTH, %i, %total;
  div.u32 %row, %i, %width;
  mul.lo.u32 %part, %row, %width;
  sub.u32 %column, %i, %part;
  div.u32 %plane, %row, %rows;
  mul.lo.u32 %part, %plane, %rows;
  sub.u32 %row, %row, %part;
  mul.wide.u32 %offset, %column, BYTES;
  add.u64 %sourceNTH, %from, %offset;
  add.u64 %targetNTH, %to, %offset;
  cvt.u64.u32 %wide, %row;
  mad.lo.u64 %sourceNTH, %wide, %from_row, %sourceNTH;
  mad.lo.u64 %targetNTH, %wide, %to_row, %targetNTH;
  cvt.u64.u32 %wide, %plane;
  mad.lo.u64 %sourceNTH, %wide, %from_plane, %sourceNTH;
  mad.lo.u64 %targetNTH, %wide, %to_plane, %targetNTH;
  mov.u32 %part, %ntid.x;
  add.u32 %i, %i, %part;
)";
constexpr const char* kLoad = "  @%is_thereNTH ld.globalKIND VALUES, [%sourceNTH];\n";
constexpr const char* kStore = "  @%is_thereNTH st.globalKIND [%targetNTH], VALUES;\n";

std::string text_of(std::size_t unit) {
  std::string body;
  for (const char* const step : {kPlace, kLoad, kStore}) {
    for (unsigned i = 0; i < kEach; ++i) {
      body += cuda::with_words(
          step,
          {{"VALUES", unit == kWide ? "{%aNTH, %bNTH}" : "%aNTH"}, {"NTH", std::to_string(i)}});
    }
  }
  return cuda::with_words(kBegin + body + "  ret;\n}\n",
                          {{"BYTES", std::to_string(unit)},
                           {"BITS", unit == 4 ? "32" : "64"},
                           {"KIND",
                            unit == kWide ? ".v2.b64"
                            : unit == 8   ? ".b64"
                                          : ".b32"}});
}

const char* name_of(std::size_t unit) {
  return unit == 4 ? "hocket_box_4" : unit == 8 ? "hocket_box_8" : "hocket_box_16";
}

}  // namespace

GpuCopy::GpuCopy(std::shared_ptr<const cuda::DeviceContext> device, std::size_t unit)
    : device_(std::move(device)),
      unit_(unit),
      wide_(device_, text_of(kWide), name_of(kWide)),
      narrow_(unit == kWide ? nullptr
                            : std::make_unique<const cuda::TextKernel>(
                                  device_, text_of(unit), name_of(unit))) {}

// Planes are a whole number of rows apart, because the arrays have no gaps.
void GpuCopy::run_by_driver(const Planes& p, cuda::Stream stream) const {
  cuda::Copy3d copy{.width_bytes = p.width, .height = p.rows.sides, .depth = p.planes.sides};
  copy.from.device = p.from;
  copy.to.device = p.to;
  copy.from.pitch = p.rows.from;
  copy.to.pitch = p.rows.to;
  copy.from.height = p.planes.sides > 1 ? p.planes.from / p.rows.from : p.rows.sides;
  copy.to.height = p.planes.sides > 1 ? p.planes.to / p.rows.to : p.rows.sides;
  const cuda::Driver& driver = device_->driver();
  cuda::check(driver, driver.memcpy_3d_async(&copy, stream), "copy a box of an array");
}

void GpuCopy::run(const Planes& p, cuda::Stream stream, Nearness reach) const {
  const std::size_t all =
      p.from | p.to | p.width | p.rows.from | p.rows.to | p.planes.from | p.planes.to;
  const bool is_wide = all % kWide == 0;
  const std::size_t unit = is_wide ? kWide : unit_;
  const std::size_t numbers = p.width / unit * p.rows.sides * p.planes.sides;
  if (all % unit != 0 || numbers > kMost || (reach == Nearness::kFar && p.width >= kLongRow)) {
    return run_by_driver(p, stream);
  }
  Planes copy = p;
  auto width = static_cast<std::uint32_t>(p.width / unit),
       rows = static_cast<std::uint32_t>(p.rows.sides), total = static_cast<std::uint32_t>(numbers);
  void* arguments[] = {&copy.from,
                       &copy.to,
                       &width,
                       &rows,
                       &total,
                       &copy.rows.from,
                       &copy.rows.to,
                       &copy.planes.from,
                       &copy.planes.to};
  const std::size_t block = kCopyThreads * kEach;
  const cuda::TextKernel& kernel = is_wide ? wide_ : *narrow_;
  kernel.launch({.grid_x = static_cast<unsigned>((numbers + block - 1) / block),
                 .block_x = kCopyThreads,
                 .stream = stream},
                arguments);
}

void GpuCopy::run(
    const Copy& copy, const void* from, void* to, cuda::Stream stream, Nearness reach) const {
  if (copy.run() == 0) return;
  const auto loops = copy.loops();
  Planes planes{reinterpret_cast<DevicePtr>(from) + copy.from(),
                reinterpret_cast<DevicePtr>(to) + copy.to(),
                copy.run(),
                {1, 0, 0},
                {1, 0, 0}};
  if (loops.empty()) {
    const cuda::Driver& driver = device_->driver();
    return cuda::check(
        driver, driver.memcpy_async(planes.to, planes.from, planes.width, stream), "copy an array");
  }
  planes.rows = loops.back();
  if (loops.size() > 1) planes.planes = loops[loops.size() - 2];
  // `run` copies the two inner loops at once. This function makes the outer loops.
  const std::size_t around = loops.size() > 2 ? loops.size() - 2 : 0;
  std::array<std::size_t, kMostAxes> at{};
  while (true) {
    run(planes, stream, reach);
    std::size_t i = around;
    while (true) {
      if (i == 0) return;
      --i;
      planes.from += loops[i].from;
      planes.to += loops[i].to;
      if (++at[i] < loops[i].sides) break;
      planes.from -= at[i] * loops[i].from;
      planes.to -= at[i] * loops[i].to;
      at[i] = 0;
    }
  }
}

}  // namespace hocket::fft
