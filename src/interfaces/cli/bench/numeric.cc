#include "interfaces/cli/bench/numeric.h"

#include <cmath>
#include <complex>
#include <cstring>
#include <numbers>
#include <sstream>
#include <vector>

namespace hocket::cli::bench {
namespace {

// --- Transforms --------------------------------------------------------------------------------

// The input of a transform is a sum of this many waves. So the result is N^3 at each wave's
// frequency and 0 elsewhere.
constexpr std::size_t kWaves = 3;
using Wave = std::array<std::size_t, 3>;
std::array<Wave, kWaves> waves_of(std::uint32_t seed, std::size_t n) {
  std::array<Wave, kWaves> waves{};
  for (std::size_t w = 0; w < kWaves; ++w) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      // The waves' frequencies along the first axis differ, if N is large enough.
      waves[w][axis] = (seed * 7 + w * (axis == 0 ? 1 : 5 + axis) + axis * 3) % n;
    }
  }
  return waves;
}

// A rank's slab: the indices of axis `cut` from `first` on, and all of the other axes, in C order.
struct Slabs {
  std::size_t n, share, cut, first;
  Slabs(const Case& subject, JobRank self, bool is_result)
      : n(subject.elements),
        share(n / static_cast<std::size_t>(self.ranks)),
        cut(is_result && subject.collective == Collective::kFftTransposed ? 1 : 0),
        first(share * static_cast<std::size_t>(self.rank)) {}

  // Calls f(index in the whole array, index in this rank's array) for each element.
  template <typename F>
  void each(F&& f) const {
    std::array<std::size_t, 3> end{n, n, n};
    end[cut] = share;
    std::size_t place = 0;
    for (std::size_t i = 0; i < end[0]; ++i) {
      for (std::size_t j = 0; j < end[1]; ++j) {
        for (std::size_t k = 0; k < end[2]; ++k) {
          f(Wave{i + (cut == 0 ? first : 0), j + (cut == 1 ? first : 0), k}, place++);
        }
      }
    }
  }
};

template <typename T>
void fill_waves(const Case& subject, JobRank self, std::uint32_t seed, T* in) {
  const std::size_t n = subject.elements;
  std::vector<std::complex<double>> roots(n);
  for (std::size_t i = 0; i < n; ++i) {
    roots[i] =
        std::polar(1.0, 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n));
  }
  const auto waves = waves_of(seed, n);
  Slabs(subject, self, false).each([&](const Wave& at, std::size_t place) {
    std::complex<double> sum = 0;
    for (const Wave& wave : waves) {
      sum += roots[(wave[0] * at[0] + wave[1] * at[1] + wave[2] * at[2]) % n];
    }
    in[place] = T(sum);
  });
}

template <typename T>
std::string check_waves(const Case& subject, JobRank self, std::uint32_t seed, const T* out) {
  const auto waves = waves_of(seed, subject.elements);
  const double points = std::pow(static_cast<double>(subject.elements), 3);
  const double limit = points * (sizeof(T) == 16 ? 1e-11 : 1e-3);
  std::string wrong;
  Slabs(subject, self, true).each([&](const Wave& at, std::size_t place) {
    double wanted = 0;
    for (const Wave& wave : waves) wanted += wave == at ? points : 0;
    if (!wrong.empty() || std::abs(std::complex<double>(out[place]) - wanted) <= limit) return;
    std::ostringstream text;
    text << "rank " << self.rank << ": " << out[place] << " instead of " << wanted << " at ("
         << at[0] << ", " << at[1] << ", " << at[2] << ")";
    wrong = text.str();
  });
  return wrong;
}

// --- Products ----------------------------------------------------------------------------------

// Small whole numbers, so that sums are exact.
double left(std::uint32_t seed, std::size_t i, std::size_t j) {
  return static_cast<double>((i * 7 + j * 3 + seed) % 11) - 5;
}
double right(std::uint32_t seed, std::size_t i, std::size_t j) {
  return static_cast<double>((i * 5 + j * 2 + seed) % 13) - 6;
}

template <typename T>
void fill_factors(std::size_t n, JobRank self, std::uint32_t seed, T* in) {
  const MatrixPart part(n, self);
  for (std::size_t j = 0; j < part.width; ++j) {
    for (std::size_t i = 0; i < part.height; ++i) {
      const std::size_t row = part.whole(0, i), column = part.whole(1, j);
      in[i + j * part.height] = static_cast<T>(left(seed, row, column));
      in[part.count() + i + j * part.height] = static_cast<T>(right(seed, row, column));
    }
  }
}

template <typename T>
std::string check_product(std::size_t n, JobRank self, std::uint32_t seed, const T* out) {
  const MatrixPart part(n, self);
  for (std::size_t j = 0; j < part.width; j += 53) {  // a sample; each takes N products
    for (std::size_t i = 0; i < part.height; i += 47) {
      const std::size_t row = part.whole(0, i), column = part.whole(1, j);
      double wanted = 0;
      for (std::size_t k = 0; k < n; ++k) wanted += left(seed, row, k) * right(seed, k, column);
      const double found = static_cast<double>(out[i + j * part.height]);
      if (found == wanted) continue;
      std::ostringstream text;
      text << "rank " << self.rank << ": " << found << " instead of " << wanted << " at (" << row
           << ", " << column << ")";
      return text.str();
    }
  }
  return "";
}

}  // namespace

MatrixPart::MatrixPart(std::size_t n, JobRank self) {
  const auto ranks = static_cast<std::size_t>(self.ranks),
             rank = static_cast<std::size_t>(self.rank);
  grid = {1, ranks};
  for (std::size_t rows = 2; rows * rows <= ranks; ++rows) {
    if (ranks % rows == 0) grid = {rows, ranks / rows};
  }
  place = {rank / grid[1], rank % grid[1]};
  const auto held = [&](std::size_t axis) {
    const std::size_t blocks = n / kBlock, turns = blocks / grid[axis];
    std::size_t count = turns * kBlock;
    if (place[axis] < blocks % grid[axis]) count += kBlock;
    if (place[axis] == blocks % grid[axis]) count += n % kBlock;
    return count;
  };
  height = held(0);
  width = held(1);
}

std::size_t MatrixPart::whole(std::size_t axis, std::size_t local) const noexcept {
  return (local / kBlock * grid[axis] + place[axis]) * kBlock + local % kBlock;
}

Shape numeric_shape(const Case& subject, JobRank self) noexcept {
  const std::size_t n = subject.elements;
  if (subject.collective == Collective::kMatmul) {
    const std::size_t count = MatrixPart(n, self).count();
    return {2 * count, count};
  }
  const std::size_t count = n * n * (n / static_cast<std::size_t>(self.ranks));
  return {count, count};
}

void fill_numeric(const Case& subject, JobRank self, std::uint32_t seed, Arrays arrays) {
  const Shape shape = numeric_shape(subject, self);
  if (shape.out > 0) std::memset(arrays.out, 0xa5, shape.out * size_of(subject.dtype));
  if (shape.in == 0) return;
  if (subject.collective == Collective::kMatmul) {
    if (subject.dtype == DType::kFloat64) {
      return fill_factors(subject.elements, self, seed, static_cast<double*>(arrays.in));
    }
    return fill_factors(subject.elements, self, seed, static_cast<float*>(arrays.in));
  }
  if (subject.dtype == DType::kComplex128) {
    return fill_waves(subject, self, seed, static_cast<std::complex<double>*>(arrays.in));
  }
  fill_waves(subject, self, seed, static_cast<std::complex<float>*>(arrays.in));
}

std::string check_numeric(const Case& subject, JobRank self, std::uint32_t seed, Arrays arrays) {
  if (subject.collective == Collective::kMatmul) {
    if (subject.dtype == DType::kFloat64) {
      return check_product(subject.elements, self, seed, static_cast<const double*>(arrays.out));
    }
    return check_product(subject.elements, self, seed, static_cast<const float*>(arrays.out));
  }
  if (subject.dtype == DType::kComplex128) {
    return check_waves(subject, self, seed, static_cast<const std::complex<double>*>(arrays.out));
  }
  return check_waves(subject, self, seed, static_cast<const std::complex<float>*>(arrays.out));
}

}  // namespace hocket::cli::bench
