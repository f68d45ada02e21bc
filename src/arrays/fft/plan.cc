#include "arrays/fft/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "calls/call/request.h"
#include "foundation/base/enumerator.h"
#include "foundation/base/hash.h"
#include "hocket/error.h"

namespace hocket::fft {
namespace {

bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
  const auto x = reinterpret_cast<std::uintptr_t>(a), y = reinterpret_cast<std::uintptr_t>(b);
  return a_bytes > 0 && b_bytes > 0 && x < y + b_bytes && y < x + a_bytes;
}

DType complex_of(DType real) {
  return real == DType::kFloat64 ? DType::kComplex128 : DType::kComplex64;
}

void check_array(
    ConstArrayView array, const char* name, DType dtype, std::size_t count, MemoryKind memory) {
  call::require_array(array, name);
  if (array.memory() != memory) {
    throw InvalidArgument(
        memory == MemoryKind::kHost
            ? fmt::format("{} lies in a GPU's memory, and the plan is of the host's; make one with "
                          "`gpu`",
                          name)
            : fmt::format("{} lies in the host's memory, and the plan is of a GPU's", name));
  }
  if (array.dtype() == dtype && array.count() == count) return;
  throw InvalidArgument(fmt::format("{} is {}[{}], expected {}[{}] as the plan's box",
                                    name,
                                    name_of(array.dtype()),
                                    array.count(),
                                    name_of(dtype),
                                    count));
}

}  // namespace

FftPlan::FftPlan(Communicator& comm,
                 const Extents& shape,
                 const Box& from,
                 const Box& to,
                 const FftOptions& options)
    : comm_(comm.impl()),
      options_(options),
      agreed_(agree(comm, shape, from, to, options, reinterpret_cast<std::uintptr_t>(this))),
      legs_(fft::route(agreed_.wanted, agreed_.from, agreed_.to)),
      in_dtype_(options.kind == FftKind::kRealToComplex ? options.precision
                                                        : complex_of(options.precision)),
      out_dtype_(options.kind == FftKind::kComplexToReal ? options.precision
                                                         : complex_of(options.precision)) {
  for (std::size_t i = agreed_.wanted.first; i < shape.size(); ++i) transformed_ *= shape[i];
  bool is_real = options.kind == FftKind::kRealToComplex;
  elements_.push_back(size_of(in_dtype_));
  for (const Leg& leg : legs_) {
    if (leg.turns) is_real = !is_real;
    elements_.push_back(size_of(is_real ? options.precision : complex_of(options.precision)));
  }
}

std::uint64_t FftPlan::digest_of(std::uint64_t step) const noexcept {
  return base::mix(agreed_.token, step);
}

void FftPlan::barrier(std::uint64_t step, std::optional<StreamRef> stream) {
  world::barrier(comm_, digest_of(step), options_.deadline, stream);
}

FftDirection FftPlan::own_direction() const noexcept {
  return options_.kind == FftKind::kComplexToReal ? FftDirection::kInverse : FftDirection::kForward;
}

double FftPlan::factor(FftDirection direction) const {
  const bool forward = direction == FftDirection::kForward;
  const double n = static_cast<double>(transformed_);
  switch (options_.norm) {
    case FftNorm::kBackward:
      return forward ? 1 : 1 / n;
    case FftNorm::kForward:
      return forward ? 1 / n : 1;
    case FftNorm::kOrtho:
      return 1 / std::sqrt(n);
    case FftNorm::kNone:
      return 1;
  }
  return 1;
}

std::size_t FftPlan::scaling_leg() const noexcept {
  std::size_t last = 0;
  for (std::size_t k = 0; k < legs_.size(); ++k) {
    if (!legs_[k].axes.empty()) last = k;
  }
  return last;
}

std::size_t FftPlan::shelf_bytes() const noexcept {
  std::size_t bytes = 0;
  for (std::size_t k = 0; k + 1 < legs_.size(); ++k) {
    for (const Box& box : legs_[k].after) bytes = std::max(bytes, box.count() * elements_[k + 1]);
  }
  return bytes;
}

FftDirection FftPlan::check(ConstArrayView in,
                            ArrayView out,
                            std::optional<FftDirection> direction,
                            MemoryKind memory) const {
  check_array(in, "in", in_dtype_, legs_.front().before[me()].count(), memory);
  check_array(out, "out", out_dtype_, legs_.back().after[me()].count(), memory);
  if (in.data() != out.data() && overlap(in.data(), in.bytes(), out.data(), out.bytes())) {
    throw InvalidArgument("in and out overlap, and do not begin at one address");
  }
  const FftDirection meant = direction.value_or(own_direction());
  base::require_enumerator(meant, FftDirection::kInverse, "direction", "FftDirection");
  if (options_.kind != FftKind::kComplex && meant != own_direction()) {
    throw InvalidArgument(options_.kind == FftKind::kRealToComplex
                              ? "real to complex is a forward transform, and direction is inverse"
                              : "complex to real is an inverse one, and direction is forward");
  }
  return meant;
}

}  // namespace hocket::fft

namespace hocket {

Fft::Fft(Communicator& comm,
         const Extents& shape,
         const Box& from,
         const Box& to,
         const FftOptions& options)
    : plan_(options.gpu ? fft::gpu_plan(comm, shape, from, to, options)
                        : fft::host_plan(comm, shape, from, to, options)) {}

Fft::Fft(Fft&&) noexcept = default;
Fft& Fft::operator=(Fft&&) noexcept = default;
Fft::~Fft() = default;

void Fft::operator()(ConstArrayView in,
                     ArrayView out,
                     std::optional<FftDirection> direction,
                     std::optional<StreamRef> stream) {
  plan_->execute(in, out, direction, stream);
}

Extents Fft::spectrum_of(Extents shape) {
  if (!shape.empty()) shape.back() = shape.back() / 2 + 1;
  return shape;
}

const std::string& Fft::library() const { return plan_->library(); }
bool Fft::is_shared() const { return plan_->is_shared(); }
std::size_t Fft::transposes() const { return plan_->transposes(); }

}  // namespace hocket
