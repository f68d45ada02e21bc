// The calls that hocket makes. Arrays are read and written by cuFFT's advanced layout, so that
// wrong strides give wrong numbers here, too.
#include "arrays/fft/cufft.h"

#include <complex>
#include <cstdint>
#include <memory>
#include <mutex>
#include <numbers>
#include <vector>

#include "host_work.h"

using hocket::cuda::Stream;
using hocket::fft::cufft::CufftResult;
using hocket::fft::cufft::CufftType;

namespace {

using Complex = std::complex<double>;
constexpr CufftResult kInvalidPlan{1};
constexpr CufftResult kInvalidSize{8};

struct Side {
  std::vector<long long> embed;
  long long stride = 0, distance = 0;
};
struct Plan {
  std::vector<long long> n;
  Side in, out;
  CufftType type{};
  long long batch = 0;
  Stream stream = nullptr;
};

std::mutex& mutex = *new std::mutex;
std::vector<std::unique_ptr<Plan>>& plans = *new std::vector<std::unique_ptr<Plan>>;

// Calls `f(index, place in that order)` for all indices below `n`.
template <typename F>
void each(const std::vector<long long>& n, F&& f) {
  std::vector<long long> at(n.size());
  for (std::size_t place = 0;; ++place) {
    f(at, place);
    std::size_t i = n.size();
    while (i > 0 && ++at[i - 1] == n[i - 1]) at[--i] = 0;
    if (i == 0) return;
  }
}

long long offset(const Side& side, const std::vector<long long>& at) {
  long long sum = 0;
  for (std::size_t i = 0; i < at.size(); ++i) sum = sum * side.embed[i] + at[i];
  return sum * side.stride;
}

std::size_t place_of(const std::vector<long long>& at, const std::vector<long long>& n) {
  std::size_t place = 0;
  for (std::size_t i = 0; i < n.size(); ++i) {
    place = place * static_cast<std::size_t>(n[i]) + static_cast<std::size_t>(at[i]);
  }
  return place;
}

void sum_along(std::vector<Complex>& x,
               const std::vector<long long>& n,
               std::size_t axis,
               int sign) {
  std::vector<Complex> y(x.size());
  each(n, [&](std::vector<long long> at, std::size_t to) {
    const long long k = at[axis];
    for (long long j = 0; j < n[axis]; ++j) {
      at[axis] = j;
      const double turn = sign * 2 * std::numbers::pi * static_cast<double>(j * k % n[axis]) /
                          static_cast<double>(n[axis]);
      y[to] += x[place_of(at, n)] * std::polar(1.0, turn);
    }
  });
  x = std::move(y);
}

bool gives_reals(CufftType type) {
  return type == CufftType::kComplexToReal || type == CufftType::kComplexToDouble;
}
bool takes_reals(CufftType type) {
  return type == CufftType::kRealToComplex || type == CufftType::kDoubleToComplex;
}

template <typename Real>
void transform(const Plan& plan, const void* in, void* out, int sign) {
  const auto& n = plan.n;
  std::vector<long long> half = n;
  half.back() = n.back() / 2 + 1;
  std::size_t count = 1;
  for (const long long extent : n) count *= static_cast<std::size_t>(extent);
  for (long long b = 0; b < plan.batch; ++b) {
    std::vector<Complex> x(count);
    const long long from = b * plan.in.distance, to = b * plan.out.distance;
    const auto* reals = static_cast<const Real*>(in);
    const auto* complexes = static_cast<const std::complex<Real>*>(in);
    each(n, [&](const std::vector<long long>& at, std::size_t place) {
      if (takes_reals(plan.type)) {
        x[place] = reals[from + offset(plan.in, at)];
      } else if (gives_reals(plan.type) && at.back() >= half.back()) {
        std::vector<long long> mirrored = at;
        for (std::size_t i = 0; i < n.size(); ++i) mirrored[i] = (n[i] - at[i]) % n[i];
        x[place] = std::conj(Complex(complexes[from + offset(plan.in, mirrored)]));
      } else {
        x[place] = complexes[from + offset(plan.in, at)];
      }
    });
    for (std::size_t axis = 0; axis < n.size(); ++axis) sum_along(x, n, axis, sign);
    each(takes_reals(plan.type) ? half : n, [&](const std::vector<long long>& at, std::size_t) {
      const Complex value = x[place_of(at, n)];
      const long long spot = to + offset(plan.out, at);
      if (gives_reals(plan.type)) {
        static_cast<Real*>(out)[spot] = static_cast<Real>(value.real());
      } else {
        static_cast<std::complex<Real>*>(out)[spot] = std::complex<Real>(value);
      }
    });
  }
}

CufftResult put(int handle, CufftType type, void* in, void* out, int sign, bool is_double) {
  const std::lock_guard lock(mutex);
  const auto at = static_cast<std::size_t>(handle);
  if (at >= plans.size() || !plans[at] || plans[at]->type != type) return kInvalidPlan;
  fake::put_on(plans[at]->stream, [plan = *plans[at], in, out, sign, is_double] {
    if (is_double) {
      transform<double>(plan, in, out, sign);
    } else {
      transform<float>(plan, in, out, sign);
    }
  });
  return CufftResult::kSuccess;
}

}  // namespace

extern "C" {

CufftResult cufftCreate(int* handle) {
  const std::lock_guard lock(mutex);
  *handle = static_cast<int>(plans.size());
  plans.push_back(std::make_unique<Plan>());
  return CufftResult::kSuccess;
}
CufftResult cufftDestroy(int handle) {
  const std::lock_guard lock(mutex);
  plans[static_cast<std::size_t>(handle)].reset();
  return CufftResult::kSuccess;
}
CufftResult cufftMakePlanMany64(int handle,
                                int rank,
                                long long* n,
                                long long* in_embed,
                                long long in_stride,
                                long long in_distance,
                                long long* out_embed,
                                long long out_stride,
                                long long out_distance,
                                CufftType type,
                                long long batch,
                                std::size_t* work) {
  if (rank < 1 || rank > 3 || batch < 1) return kInvalidSize;
  const std::lock_guard lock(mutex);
  Plan& plan = *plans[static_cast<std::size_t>(handle)];
  plan.n.assign(n, n + rank);
  plan.in = {{in_embed, in_embed + rank}, in_stride, in_distance};
  plan.out = {{out_embed, out_embed + rank}, out_stride, out_distance};
  plan.type = type;
  plan.batch = batch;
  *work = 0;
  return CufftResult::kSuccess;
}
CufftResult cufftSetStream(int handle, Stream stream) {
  const std::lock_guard lock(mutex);
  plans[static_cast<std::size_t>(handle)]->stream = stream;
  return CufftResult::kSuccess;
}
CufftResult cufftExecC2C(int plan, void* in, void* out, int sign) {
  return put(plan, CufftType::kComplex, in, out, sign, false);
}
CufftResult cufftExecZ2Z(int plan, void* in, void* out, int sign) {
  return put(plan, CufftType::kDoubleComplex, in, out, sign, true);
}
CufftResult cufftExecR2C(int plan, void* in, void* out) {
  return put(plan, CufftType::kRealToComplex, in, out, -1, false);
}
CufftResult cufftExecD2Z(int plan, void* in, void* out) {
  return put(plan, CufftType::kDoubleToComplex, in, out, -1, true);
}
CufftResult cufftExecC2R(int plan, void* in, void* out) {
  return put(plan, CufftType::kComplexToReal, in, out, 1, false);
}
CufftResult cufftExecZ2D(int plan, void* in, void* out) {
  return put(plan, CufftType::kComplexToDouble, in, out, 1, true);
}
CufftResult cufftGetVersion(int* version) {
  *version = 12000;
  return CufftResult::kSuccess;
}

}  // extern "C"
