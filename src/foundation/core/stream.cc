// Copies whose stores bypass the caches.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "foundation/core/stream.cc"
// clang-format off
#include "hwy/foreach_target.h"  // must come first
#include "foundation/core/kernels-inl.h"
#include "hwy/cache_control.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace hocket::core::HWY_NAMESPACE {

// Copies whole cache lines of `to` with streaming stores. memcpy copies the incomplete lines at
// both ends.
void stream_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  const std::size_t head = -reinterpret_cast<std::uintptr_t>(to) % kLine;
  if (bytes < head + kLine) {
    std::memcpy(to, from, bytes);
    return;
  }
  std::memcpy(to, from, head);
  const hn::ScalableTag<std::uint8_t> d;
  const std::size_t step = hn::Lanes(d);
  std::size_t i = head;
  for (; i + kLine <= bytes; i += kLine) {
    for (std::size_t part = 0; part < kLine; part += step) {
      hn::Stream(load_lanes(d, from + i + part), d, reinterpret_cast<std::uint8_t*>(to + i + part));
    }
  }
  std::memcpy(to + i, from + i, bytes - i);
}

}  // namespace hocket::core::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace hocket::core {

HWY_EXPORT(stream_bytes);

void stream(void* out, const void* in, std::size_t bytes) {
  HWY_DYNAMIC_DISPATCH(stream_bytes)
  (static_cast<std::byte*>(out), static_cast<const std::byte*>(in), bytes);
}

void stream_fence() { hwy::FlushStream(); }

}  // namespace hocket::core
#endif
