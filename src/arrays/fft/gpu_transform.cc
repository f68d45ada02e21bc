#include "arrays/fft/gpu_transform.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

namespace hocket::fft {
namespace {

using cufft::CufftType;

CufftType type_of(FftKind kind, bool is_double) noexcept {
  switch (kind) {
    case FftKind::kComplex:
      return is_double ? CufftType::kDoubleComplex : CufftType::kComplex;
    case FftKind::kRealToComplex:
      return is_double ? CufftType::kDoubleToComplex : CufftType::kRealToComplex;
    case FftKind::kComplexToReal:
      return is_double ? CufftType::kComplexToDouble : CufftType::kComplexToReal;
  }
  return CufftType::kComplex;
}

std::size_t product(const Extents& shape, std::size_t begin, std::size_t end) {
  return std::accumulate(shape.begin() + static_cast<std::ptrdiff_t>(begin),
                         shape.begin() + static_cast<std::ptrdiff_t>(end),
                         std::size_t{1},
                         std::multiplies<>());
}

std::vector<long long> extents_of(const Extents& shape, std::size_t first, std::size_t last) {
  return {shape.begin() + static_cast<std::ptrdiff_t>(first),
          shape.begin() + static_cast<std::ptrdiff_t>(last) + 1};
}

struct AxisRun {
  std::size_t first, last;
};

// Joins consecutive axes, which cuFFT transforms at once.
std::vector<AxisRun> runs_of(const std::vector<std::size_t>& axes) {
  std::vector<AxisRun> runs;
  for (const std::size_t axis : axes) {
    if (!runs.empty() && runs.back().last + 1 == axis) {
      runs.back().last = axis;
    } else {
      runs.push_back({axis, axis});
    }
  }
  return runs;
}

}  // namespace

GpuTransform::GpuTransform(std::shared_ptr<const Cufft> cufft,
                           FftKind kind,
                           bool is_double,
                           bool is_inverse,
                           const Extents& shape,
                           const std::vector<std::size_t>& axes)
    : cufft_(std::move(cufft)), kind_(kind), is_double_(is_double), is_inverse_(is_inverse) {
  // A forward transform begins with the last axes, because they turn real numbers into complex
  // ones. An inverse transform ends with the last axes.
  std::vector<AxisRun> runs = runs_of(axes);
  const Extents between = kind == FftKind::kComplex ? shape : Fft::spectrum_of(shape);
  if (kind != FftKind::kComplexToReal) std::reverse(runs.begin(), runs.end());
  for (const AxisRun& part : runs) {
    const bool turns = kind != FftKind::kComplex && part.last + 1 == shape.size();
    add(turns ? kind : FftKind::kComplex, turns ? shape : between, part.first, part.last);
    Pass& pass = passes_.back();
    const bool is_first = passes_.size() == 1, is_last = passes_.size() == runs.size();
    pass.from_in = is_first || kind == FftKind::kComplexToReal;
    pass.to_out = is_last || kind != FftKind::kComplexToReal;
  }
}

void GpuTransform::add(FftKind kind, const Extents& shape, std::size_t first, std::size_t last) {
  const Extents complex_side = kind == FftKind::kComplex ? shape : Fft::spectrum_of(shape);
  const Extents& in = kind == FftKind::kComplexToReal ? complex_side : shape;
  const Extents& out = kind == FftKind::kRealToComplex ? complex_side : shape;
  auto n = extents_of(shape, first, last), in_embed = extents_of(in, first, last),
       out_embed = extents_of(out, first, last);
  const auto block = [&](const Extents& side) { return product(side, first, last + 1); };
  // Two loops surround the run: one over the axes before it, one over the axes after it. cuFFT
  // makes the longer loop as a batch, and `run` makes the other one.
  const std::size_t outer = product(shape, 0, first),
                    inner = product(shape, last + 1, shape.size());
  const bool by_inner = inner > outer;
  const std::size_t element = is_double_ ? 16 : 8;
  const Pass& pass =
      passes_.emplace_back(Pass{.plan = CufftHandle(*cufft_),
                                .kind = kind,
                                .loops = by_inner ? outer : inner,
                                .step = (by_inner ? block(in) * inner : 1) * element});
  std::size_t work = 0;
  const auto stride = static_cast<long long>(inner);
  cufft_->check(cufft_->make_plan_many(pass.plan.get(),
                                       static_cast<int>(n.size()),
                                       n.data(),
                                       in_embed.data(),
                                       stride,
                                       by_inner ? 1 : static_cast<long long>(block(in) * inner),
                                       out_embed.data(),
                                       stride,
                                       by_inner ? 1 : static_cast<long long>(block(out) * inner),
                                       type_of(kind, is_double_),
                                       static_cast<long long>(by_inner ? inner : outer),
                                       &work),
                "plan a transform");
}

void GpuTransform::execute(const Pass& pass, std::byte* from, std::byte* to) const {
  const int sign = is_inverse_ ? cufft::kInverse : cufft::kForward;
  const auto status = [&] {
    switch (pass.kind) {
      case FftKind::kComplex:
        return is_double_ ? cufft_->exec_z2z(pass.plan.get(), from, to, sign)
                          : cufft_->exec_c2c(pass.plan.get(), from, to, sign);
      case FftKind::kRealToComplex:
        return is_double_ ? cufft_->exec_d2z(pass.plan.get(), from, to)
                          : cufft_->exec_r2c(pass.plan.get(), from, to);
      case FftKind::kComplexToReal:
        return is_double_ ? cufft_->exec_z2d(pass.plan.get(), from, to)
                          : cufft_->exec_c2r(pass.plan.get(), from, to);
    }
    return cufft::CufftResult::kSuccess;
  }();
  cufft_->check(status, "transform");
}

void GpuTransform::run(void* in, void* out, cuda::Stream stream) const {
  for (const Pass& pass : passes_) {
    cufft_->check(cufft_->set_stream(pass.plan.get(), stream), "use the stream");
    auto* from = static_cast<std::byte*>(pass.from_in ? in : out);
    auto* to = static_cast<std::byte*>(pass.to_out ? out : in);
    // A real transform includes the last axis. Then there are no inner axes, and `loops` is 1.
    for (std::size_t i = 0; i < pass.loops; ++i) {
      execute(pass, from + i * pass.step, to + i * pass.step);
    }
  }
}

std::vector<Box> slices_of(const Box& box, std::size_t count) {
  std::vector<Box> slices;
  for (std::size_t j = 0; j < count; ++j) {
    const Box part = Slab{0}.box(box.shape(), static_cast<int>(j), static_cast<int>(count));
    Extents lower = box.lower(), upper = box.upper();
    upper[0] = lower[0] + part.upper()[0];
    lower[0] += part.lower()[0];
    slices.emplace_back(std::move(lower), std::move(upper));
  }
  return slices;
}

SlicedTransform::SlicedTransform(const std::shared_ptr<const Cufft>& cufft,
                                 FftKind kind,
                                 bool is_double,
                                 bool is_inverse,
                                 const std::array<Box, 2>& boxes,
                                 const std::vector<std::size_t>& axes,
                                 std::size_t slices,
                                 Elements elements)
    : kind_(kind) {
  const std::vector<Box> before = slices_of(boxes[0], slices), after = slices_of(boxes[1], slices);
  std::map<std::size_t, const GpuTransform*> made;  // by extent
  std::size_t from = 0, to = 0;
  for (std::size_t j = 0; j < slices; ++j) {
    const GpuTransform* transform = nullptr;
    if (!before[j].is_empty()) {
      const GpuTransform*& known = made[before[j].shape()[0]];
      if (known == nullptr) {
        const Box& real = kind == FftKind::kComplexToReal ? after[j] : before[j];
        known = transforms_
                    .emplace_back(std::make_unique<GpuTransform>(
                        cufft, kind, is_double, is_inverse, real.shape(), axes))
                    .get();
      }
      transform = known;
    }
    slices_.push_back({transform, from, to, after[j].count()});
    from += before[j].count() * elements.before;
    to += after[j].count() * elements.after;
  }
}

SlicedTransform::Made SlicedTransform::run(std::size_t slice,
                                           void* in,
                                           void* out,
                                           cuda::Stream stream) const {
  const Slice& part = slices_[slice];
  auto* const to = static_cast<std::byte*>(out) + part.to;
  if (part.transform == nullptr) return {to, 0};
  part.transform->run(static_cast<std::byte*>(in) + part.from, to, stream);
  return {to, part.elements};
}

}  // namespace hocket::fft
