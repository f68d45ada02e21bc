// Heat that spreads in a periodic box: in Fourier space each wave fades by itself, so one transform
// there and one back lead to any time. Checked against the exact solution.
#include <hocket/hocket.h>

#include <cmath>
#include <complex>
#include <cstdio>
#include <numbers>
#include <vector>

#include "check.h"

int main() try {
  hocket::World world = hocket::init({.deadline = std::chrono::seconds(30)});
  hocket::Communicator& comm = world.communicator();

  const std::size_t n = 24;
  const hocket::Extents shape{n, n, n};
  const hocket::Extents half = hocket::Fft::spectrum_of(shape);
  const hocket::Box here = hocket::Slab{0}.box(shape, comm.rank(), comm.size());
  const hocket::Box there = hocket::Slab{1}.box(half, comm.rank(), comm.size());
  hocket::Fft forward(comm, shape, here, there, {.kind = hocket::FftKind::kRealToComplex});
  hocket::Fft back(comm, shape, there, here, {.kind = hocket::FftKind::kComplexToReal});

  // Two waves, 2 x + 3 y and 5 z; each fades with the square of its number.
  const double time = 0.02;
  const auto heat = [&](double t, std::size_t i, std::size_t j, std::size_t k) {
    const auto at = [&](std::size_t x) {
      return 2 * std::numbers::pi * static_cast<double>(x) / n;
    };
    return std::exp(-13 * t) * std::sin(2 * at(i) + 3 * at(j)) +
           std::exp(-25 * t) * std::cos(5 * at(k));
  };
  std::vector<double> field;
  for (std::size_t i = here.lower()[0]; i < here.upper()[0]; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t k = 0; k < n; ++k) field.push_back(heat(0, i, j, k));
    }
  }

  std::vector<std::complex<double>> spectrum(there.count());
  forward(field, spectrum);
  std::size_t at = 0;
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = there.lower()[1]; j < there.upper()[1]; ++j) {
      for (std::size_t k = 0; k < half[2]; ++k) {
        // The upper half of an axis are the negative numbers.
        const auto number = [&](std::size_t x) {
          return static_cast<double>(x) - (x > n / 2 ? static_cast<double>(n) : 0);
        };
        const double square = std::pow(number(i), 2) + std::pow(number(j), 2) + std::pow(k, 2);
        spectrum[at++] *= std::exp(-square * time);
      }
    }
  }
  back(spectrum, field);

  double worst = 0;
  at = 0;
  for (std::size_t i = here.lower()[0]; i < here.upper()[0]; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t k = 0; k < n; ++k) {
        worst = std::max(worst, std::abs(field[at++] - heat(time, i, j, k)));
      }
    }
  }
  comm.all_reduce(hocket::scalar(worst), {.op = hocket::ReduceOp::kMax});
  examples::expect_equal(worst < 1e-12, true, "the heat after a while");
  if (comm.rank() == 0) {
    std::printf("%zu^3 points over %d ranks, by %s: error %.0e\n",
                n,
                comm.size(),
                forward.library().c_str(),
                worst);
  }
  return 0;
} catch (const std::exception& error) {
  return examples::failed(error);
}
