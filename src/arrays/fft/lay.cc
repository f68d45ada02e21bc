#include "arrays/fft/lay.h"

#include <algorithm>
#include <cstring>

#include "foundation/core/kernels.h"

namespace hocket::fft {
namespace {

constexpr std::size_t kLine = 64;  // bytes that caches move
constexpr std::size_t kAwkward =
    1024;  // multiples of it, as strides in bytes, share few cache sets
constexpr std::size_t kStreamed = 512;  // shorter runs, in bytes, use ordinary stores

// Calls `f(offset)` for each run along the last axis of `part`.
template <typename F>
void each_run(const Lay& lay, const Box& part, F&& f) {
  if (part.is_empty()) return;
  std::array<std::size_t, kMostAxes> at{};
  const std::size_t axes = part.axes();
  const Extents& lower = part.lower();
  const Extents& upper = part.upper();
  std::size_t place = lay.offset(lower);
  while (true) {
    f(place);
    std::size_t i = axes - 1;
    while (i-- > 0) {
      place += lay.strides[i];
      if (++at[i] < upper[i] - lower[i]) break;
      place -= at[i] * lay.strides[i];
      at[i] = 0;
      if (i == 0) return;
    }
    if (axes == 1) return;
  }
}

}  // namespace

Lay Lay::packed(const Box& box) { return padded(box, 0); }

Lay Lay::padded(const Box& box, std::size_t element) {
  Lay lay{box, Extents(box.axes())};
  const Extents shape = box.shape();
  std::size_t stride = 1;
  for (std::size_t i = box.axes(); i-- > 0;) {
    if (element != 0 && stride > 1 && stride * element % kAwkward == 0) stride += kLine / element;
    lay.strides[i] = stride;
    stride *= shape[i];
  }
  return lay;
}

std::size_t Lay::offset(const Extents& index) const noexcept {
  std::size_t at = 0;
  for (std::size_t i = 0; i < index.size(); ++i) at += (index[i] - box.lower()[i]) * strides[i];
  return at;
}

bool Lay::is_awkward(const std::vector<std::size_t>& axes, std::size_t element) const noexcept {
  return std::any_of(axes.begin(), axes.end(), [&](std::size_t axis) {
    return strides[axis] * element % kAwkward == 0;
  });
}

std::size_t Lay::span() const noexcept {
  if (box.is_empty()) return 0;
  std::size_t last = 0;
  for (std::size_t i = 0; i < box.axes(); ++i) {
    last += (box.upper()[i] - box.lower()[i] - 1) * strides[i];
  }
  return last + 1;
}

Copy::Copy(const Box& part, const Lay& from, const Lay& to, std::size_t element) {
  if (part.is_empty()) return;
  from_ = from.offset(part.lower()) * element;
  to_ = to.offset(part.lower()) * element;
  run_ = element;
  const Extents shape = part.shape();
  std::array<Side, kMostAxes> found{};  // the innermost first
  for (std::size_t i = part.axes(); i-- > 0;) {
    if (shape[i] == 1) continue;
    const Side side{shape[i], from.strides[i] * element, to.strides[i] * element};
    if (loops_ == 0 && side.from == run_ && side.to == run_) {
      run_ *= side.sides;
    } else if (loops_ > 0 && side.from == found[loops_ - 1].from * found[loops_ - 1].sides &&
               side.to == found[loops_ - 1].to * found[loops_ - 1].sides) {
      found[loops_ - 1].sides *= side.sides;
    } else {
      found[loops_++] = side;
    }
  }
  for (std::size_t i = 0; i < loops_; ++i) loop_[i] = found[loops_ - 1 - i];
}

void Copy::operator()(const std::byte* from, std::byte* to, core::Stores stores) const noexcept {
  if (run_ == 0) return;
  if (stores == core::Stores::kStreaming && run_ >= kStreamed) {
    each(from, to, core::stream);
    core::stream_fence();
  } else {
    each(from, to, std::memcpy);
  }
}

template <typename F>
void Copy::each(const std::byte* from, std::byte* to, F&& copy) const noexcept {
  from += from_;
  to += to_;
  if (loops_ == 0) {
    copy(to, from, run_);
    return;
  }
  const Side inner = loop_[loops_ - 1];
  std::array<std::size_t, kMostAxes> at{};
  while (true) {
    for (std::size_t j = 0; j < inner.sides; ++j) {
      copy(to + j * inner.to, from + j * inner.from, run_);
    }
    std::size_t i = loops_ - 1;
    while (true) {
      if (i == 0) return;
      --i;
      from += loop_[i].from;
      to += loop_[i].to;
      if (++at[i] < loop_[i].sides) break;
      from -= at[i] * loop_[i].from;
      to -= at[i] * loop_[i].to;
      at[i] = 0;
    }
  }
}

template <typename T>
void scale(T* data, std::size_t reals, const Lay& lay, const Box& part, T factor) {
  if (part.is_empty()) return;
  const std::size_t count = (part.upper().back() - part.lower().back()) * reals;
  each_run(lay, part, [&](std::size_t at) {
    T* const run = data + at * reals;
    for (std::size_t i = 0; i < count; ++i) run[i] *= factor;
  });
}
template void scale(float*, std::size_t, const Lay&, const Box&, float);
template void scale(double*, std::size_t, const Lay&, const Box&, double);

}  // namespace hocket::fft
