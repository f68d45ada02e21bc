#include "arrays/pool/halo_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <complex>
#include <cstring>

#include "foundation/core/dispatch.h"

namespace hocket::pool {
namespace {

// The type in which numbers are blended.
template <typename T>
struct Blended {
  using Type = double;
};
template <typename T>
struct Blended<std::complex<T>> {
  using Type = std::complex<double>;
};

template <typename T>
T narrowed(const typename Blended<T>::Type& value) {
  if constexpr (std::is_same_v<typename Blended<T>::Type, double>) {
    if constexpr (std::is_arithmetic_v<T>) {
      return static_cast<T>(value);
    } else {
      return T(static_cast<float>(value));  // the small floats
    }
  } else {
    return T(value);
  }
}

template <typename T>
typename Blended<T>::Type widened(const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<double>(value);
  } else if constexpr (std::is_same_v<typename Blended<T>::Type, double>) {
    return static_cast<double>(static_cast<float>(value));
  } else {
    return typename Blended<T>::Type(value);
  }
}

// The weights of the two sides in one row of a seam.
struct Ramp {
  double low, high;
};
Ramp ramp_at(std::size_t row, std::size_t overlap) {
  const double part = 1.0 / static_cast<double>(overlap + 1);
  const double k = static_cast<double>(row + 1);
  return {.low = 1.0 - k * part, .high = k * part};
}

// Blends two strips, so that both become equal. The weight of `low` falls from its first row on.
template <typename T>
void blend(T* low, T* high, std::size_t overlap, std::size_t inner) {
  for (std::size_t row = 0; row < overlap; ++row) {
    const Ramp ramp = ramp_at(row, overlap);
    for (std::size_t i = row * inner; i < (row + 1) * inner; ++i) {
      low[i] = high[i] = narrowed<T>(ramp.low * widened(low[i]) + ramp.high * widened(high[i]));
    }
  }
}

void synchronize(const DeviceLane& lane) {
  cuda::check(
      lane.driver(), lane.driver().stream_synchronize(lane.stream().handle()), "wait for a stream");
}

// Waits for the caller's streams with a deadline, because their work may be long, or never end.
void await_callers(const WorkerState& state) {
  const Duration allowed = state.world->communicator().deadline();
  const DeviceLane& lane = *state.lane;
  if (cuda::drain(lane.driver(), lane.stream().handle(), base::Deadline::in(allowed))) return;
  throw DeviceError(
      fmt::format("the GPUs' work before an exchange of halos did not end within {}; give the pool "
                  "a longer deadline",
                  base::in_seconds(allowed)));
}

}  // namespace

HaloLayout halo_layout(const HaloShape& shape, std::size_t row, std::size_t overlap, DType dtype) {
  const std::size_t row_bytes = shape.inner * size_of(dtype);
  return {.outer = shape.outer,
          .offset = row * row_bytes,
          .stride = shape.rows * row_bytes,
          .bytes = overlap * row_bytes};
}

Rows take(const WorkerState* state, ArrayView array, const HaloLayout& layout) {
  Rows rows(layout.total());
  if (rows.empty()) return rows;
  if (state == nullptr) {
    for (std::size_t o = 0; o < layout.outer; ++o) {
      std::memcpy(rows.data() + o * layout.bytes, layout.strip(array, o), layout.bytes);
    }
    return rows;
  }
  // Gather the rows on the GPU first, so that one copy brings them to the host.
  const DeviceLane& lane = *state->lane;
  const cuda::ScratchMemory kept(lane.device(), layout.total(), lane.stream().handle());
  for (std::size_t o = 0; o < layout.outer; ++o) {
    lane.copy(static_cast<std::byte*>(kept.data()) + o * layout.bytes,
              layout.strip(array, o),
              layout.bytes);
  }
  await_callers(*state);
  lane.copy(rows.data(), kept.data(), rows.size());
  synchronize(lane);
  return rows;
}

void put(const WorkerState* state, ArrayView array, const HaloLayout& layout, const Rows& rows) {
  if (rows.empty()) return;
  if (state == nullptr) {
    for (std::size_t o = 0; o < layout.outer; ++o) {
      std::memcpy(layout.strip(array, o), rows.data() + o * layout.bytes, layout.bytes);
    }
    return;
  }
  const DeviceLane& lane = *state->lane;
  const cuda::ScratchMemory kept(lane.device(), layout.total(), lane.stream().handle());
  lane.copy(kept.data(), rows.data(), rows.size());
  synchronize(lane);
  for (std::size_t o = 0; o < layout.outer; ++o) {
    lane.copy(layout.strip(array, o),
              static_cast<const std::byte*>(kept.data()) + o * layout.bytes,
              layout.bytes);
  }
}

void swap_or_blend(std::byte* low,
                   std::byte* high,
                   std::size_t bytes,
                   std::size_t overlap,
                   DType dtype,
                   HaloOptions::Mode mode) {
  if (mode == HaloOptions::Mode::kSwap) {
    std::swap_ranges(low, low + bytes, high);
    return;
  }
  core::dispatch(dtype, [&]<typename T>() {
    blend(reinterpret_cast<T*>(low),
          reinterpret_cast<T*>(high),
          overlap,
          bytes / sizeof(T) / overlap);
  });
}

}  // namespace hocket::pool
