#include "fft/gpu_copy.h"

namespace hocket::fft {
namespace {

using cuda::DevicePtr;

// Rows in planes; both lays have no gaps, so that planes are whole numbers of rows apart.
void copy_planes(const cuda::Driver& driver,
                 const Copy& copy,
                 DevicePtr from,
                 DevicePtr to,
                 cuda::Stream stream) {
  const auto loops = copy.loops();
  const Copy::Side rows = loops.back();
  cuda::Copy3d planes{.width_bytes = copy.run(), .height = rows.sides, .depth = 1};
  planes.from.device = from;
  planes.to.device = to;
  planes.from.pitch = rows.from;
  planes.to.pitch = rows.to;
  planes.from.height = planes.to.height = rows.sides;
  if (loops.size() > 1) {
    const Copy::Side side = loops[loops.size() - 2];
    planes.depth = side.sides;
    planes.from.height = side.from / rows.from;
    planes.to.height = side.to / rows.to;
  }
  cuda::check(driver, driver.memcpy_3d_async(&planes, stream), "copy a box of an array");
}

// The loops from `depth` on; those of the last two are the driver's.
void copy_loops(const cuda::Driver& driver,
                const Copy& copy,
                std::size_t depth,
                DevicePtr from,
                DevicePtr to,
                cuda::Stream stream) {
  const auto loops = copy.loops();
  if (depth + 2 >= loops.size()) return copy_planes(driver, copy, from, to, stream);
  for (std::size_t i = 0; i < loops[depth].sides; ++i) {
    copy_loops(driver,
               copy,
               depth + 1,
               from + i * loops[depth].from,
               to + i * loops[depth].to,
               stream);
  }
}

}  // namespace

void copy_on(const cuda::Driver& driver,
             const Copy& copy,
             const void* from,
             void* to,
             cuda::Stream stream) {
  if (copy.run() == 0) return;
  const DevicePtr source = reinterpret_cast<DevicePtr>(from) + copy.from();
  const DevicePtr target = reinterpret_cast<DevicePtr>(to) + copy.to();
  if (copy.loops().empty()) {
    cuda::check(driver, driver.memcpy_async(target, source, copy.run(), stream), "copy an array");
  } else {
    copy_loops(driver, copy, 0, source, target, stream);
  }
}

}  // namespace hocket::fft
