// Fourier transforms on threads, against sums written out, and against what must hold of any.
#include "hocket/fft.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdlib>
#include <numbers>
#include <random>

#include "arrays/fft/route.h"
#include "hocket/group.h"

namespace hocket {
namespace {

using Complex = std::complex<double>;
using Boxes = std::vector<Box>;

// The position in a box's array of an index of the whole.
std::size_t place(const Box& box, const Extents& at) {
  std::size_t p = 0;
  for (std::size_t i = 0; i < at.size(); ++i) {
    p = p * (box.upper()[i] - box.lower()[i]) + at[i] - box.lower()[i];
  }
  return p;
}

template <typename F>
void each_index(const Box& box, F&& f) {
  if (box.is_empty()) return;
  Extents at = box.lower();
  while (true) {
    f(at);
    std::size_t i = at.size();
    while (i > 0 && ++at[i - 1] == box.upper()[i - 1]) {
      --i;
      at[i] = box.lower()[i];
    }
    if (i == 0) return;
  }
}

Box whole(const Extents& shape) { return {Extents(shape.size()), shape}; }

// The sums, axis by axis.
std::vector<Complex> transformed(std::vector<Complex> x,
                                 const Extents& shape,
                                 std::size_t first,
                                 double sign) {
  for (std::size_t axis = first; axis < shape.size(); ++axis) {
    std::vector<Complex> y(x.size());
    each_index(whole(shape), [&](Extents at) {
      const std::size_t k = at[axis], n = shape[axis], to = place(whole(shape), at);
      for (std::size_t j = 0; j < n; ++j) {
        at[axis] = j;
        const double turn =
            sign * 2 * std::numbers::pi * static_cast<double>(j * k % n) / static_cast<double>(n);
        y[to] += x[place(whole(shape), at)] * std::polar(1.0, turn);
      }
    });
    x = std::move(y);
  }
  return x;
}

// A box a rank, of the kinds that programs use; `form` selects the kind.
Boxes spread(const Extents& shape, std::size_t ranks, int form) {
  Boxes boxes;
  const auto n = static_cast<int>(ranks);
  if (form == 3) {  // pencils, or the like
    return fft::cut(shape, ranks, [&] {
      std::vector<bool> keep(shape.size());
      keep.back() = true;
      return keep;
    }());
  }
  if (form == 4) {  // all with the last rank
    for (std::size_t r = 0; r < ranks; ++r) {
      boxes.push_back(r + 1 == ranks ? whole(shape)
                                     : Box(Extents(shape.size()), Extents(shape.size())));
    }
    return boxes;
  }
  const std::size_t axis = std::min<std::size_t>(static_cast<std::size_t>(form), shape.size() - 1);
  for (int r = 0; r < n; ++r) boxes.push_back(Slab{axis}.box(shape, n - 1 - r, n));
  return boxes;
}

struct Try {
  Extents shape;
  std::size_t axes;  // transformed
  FftKind kind;
  int from, to;
  bool in_place = false;
};

template <typename Real>
void check(Communicator& comm, const Try& one, double tolerance) {
  using C = std::complex<Real>;
  const auto ranks = static_cast<std::size_t>(comm.size()),
             me = static_cast<std::size_t>(comm.rank());
  const std::size_t first = one.shape.size() - one.axes;
  const Extents half = Fft::spectrum_of(one.shape);
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  std::vector<Complex> x(count_of(one.shape));
  const bool is_real = one.kind != FftKind::kComplex;
  for (Complex& value : x) value = {normal(random), is_real ? 0 : normal(random)};
  const std::vector<Complex> spectrum = transformed(x, one.shape, first, -1);
  const bool back = one.kind == FftKind::kComplexToReal;
  const Extents in_shape = back ? half : one.shape;
  const Extents out_shape = one.kind == FftKind::kRealToComplex ? half : one.shape;
  const Boxes from = spread(in_shape, ranks, one.from), to = spread(out_shape, ranks, one.to);

  Fft fft(comm,
          one.shape,
          from[me],
          to[me],
          {.kind = one.kind,
           .precision = dtype_of<Real>,
           .axes = one.axes,
           .planning = FftPlanning::kEstimated});
  // Twice, with other numbers the second time.
  for (const double times : {1.0, -2.0}) {
    std::vector<C> in(from[me].count()), out(to[me].count());
    std::vector<Real> real_in(from[me].count()), real_out(to[me].count());
    each_index(from[me], [&](const Extents& at) {
      const Complex value = times * (back ? spectrum : x)[place(whole(one.shape), at)];
      in[place(from[me], at)] = C(value);
      real_in[place(from[me], at)] = static_cast<Real>(value.real());
    });
    if (one.kind == FftKind::kRealToComplex) {
      const auto kept = real_in;
      fft(real_in, out);
      EXPECT_EQ(kept, real_in);
    } else if (back) {
      const auto kept = in;
      fft(in, real_out);
      EXPECT_EQ(kept, in);
    } else if (one.in_place && in.size() == out.size()) {
      fft(in, in);
      out = in;
    } else {
      const auto kept = in;
      fft(in, out);
      EXPECT_EQ(kept, in);
    }
    double worst = 0, most = 1;
    each_index(to[me], [&](const Extents& at) {
      const Complex want = times * (back ? x : spectrum)[place(whole(one.shape), at)];
      const std::size_t p = place(to[me], at);
      const Complex got = back ? Complex(static_cast<double>(real_out[p])) : Complex(out[p]);
      worst = std::max(worst, std::abs(got - want));
      most = std::max(most, std::abs(want));
    });
    EXPECT_LT(worst / most, tolerance)
        << "from " << to_string(from[me]) << " to " << to_string(to[me]) << " kind "
        << static_cast<int>(one.kind) << " by " << fft.library();
  }
}

class Fourier : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { ::setenv("HOCKET_FFT_LIBRARY", GetParam(), 1); }
  void TearDown() override { ::unsetenv("HOCKET_FFT_LIBRARY"); }
};

TEST_P(Fourier, IsWhatTheSumsSay) {
  const std::vector<Extents> shapes = {{1}, {17}, {12, 5}, {2, 3, 4}, {7, 4, 6}, {4, 3, 2, 5}};
  for (int ranks : {1, 2, 3, 5, 8}) {
    run_threads(ranks, [&](Communicator& comm) {
      int turn = ranks;
      for (const Extents& shape : shapes) {
        for (const FftKind kind :
             {FftKind::kComplex, FftKind::kRealToComplex, FftKind::kComplexToReal}) {
          for (int from = 0; from < 5; ++from) {
            const int to = turn++ % 5;
            for (std::size_t axes = 1; axes <= std::min<std::size_t>(3, shape.size()); ++axes) {
              check<double>(comm, {shape, axes, kind, from, to, turn % 2 == 0}, 1e-13);
            }
          }
        }
      }
      check<float>(comm, {{6, 5, 7}, 3, FftKind::kComplex, 0, 1}, 1e-6);
      check<float>(comm, {{6, 5, 7}, 3, FftKind::kRealToComplex, 0, 3}, 1e-6);
      check<float>(comm, {{6, 5, 7}, 2, FftKind::kComplexToReal, 1, 0}, 1e-6);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Libraries, Fourier, testing::Values("eigen", ""));

// Strides that are multiples of a large power of two map to few cache sets. Then the first leg
// transforms piece by piece, too. The expected spectrum is that of one rank, which transforms the
// whole array at once.
TEST(Fft, ByPiecesAsAtOnce) {
  const Extents shape{24, 64, 64}, half = Fft::spectrum_of(shape);
  std::mt19937 random(11);
  std::normal_distribution<double> normal;
  std::vector<double> x(count_of(shape));
  for (double& value : x) value = normal(random);
  std::vector<Complex> spectrum(count_of(half));
  run_threads(1, [&](Communicator& comm) {
    Fft(comm, shape, whole(shape), whole(half), {.kind = FftKind::kRealToComplex})(x, spectrum);
  });
  for (const int ranks : {2, 3}) {
    run_threads(ranks, [&](Communicator& comm) {
      const auto me = static_cast<std::size_t>(comm.rank());
      for (int from = 0; from < 3; ++from) {
        const int to = (from + ranks) % 3;
        const auto boxes = [&](const Extents& extents, int form) {
          return spread(extents, static_cast<std::size_t>(ranks), form)[me];
        };
        const Box real = boxes(shape, from), complex = boxes(half, to), back = boxes(shape, to);
        std::vector<double> in(real.count()), again(real.count());
        each_index(real,
                   [&](const Extents& at) { in[place(real, at)] = x[place(whole(shape), at)]; });
        std::vector<Complex> out(complex.count());
        Fft(comm, shape, real, complex, {.kind = FftKind::kRealToComplex})(in, out);
        each_index(complex, [&](const Extents& at) {
          const Complex want = spectrum[place(whole(half), at)];
          ASSERT_NEAR(std::abs(out[place(complex, at)] - want), 0, 1e-9);
        });
        Fft(comm, shape, complex, real, {.kind = FftKind::kComplexToReal})(out, again);
        for (std::size_t i = 0; i < in.size(); ++i) ASSERT_NEAR(again[i], in[i], 1e-12);
        // The same numbers, as complex ones.
        const std::vector<Complex> wide(in.begin(), in.end());
        std::vector<Complex> all(back.count());
        Fft(comm, shape, real, back)(wide, all);
        each_index(back, [&](const Extents& at) {
          if (at[2] >= half[2]) return;
          const Complex want = spectrum[place(whole(half), at)];
          ASSERT_NEAR(std::abs(all[place(back, at)] - want), 0, 1e-9);
        });
      }
    });
  }
}

// An array's batches are such pieces, of one rank as well.
TEST(Fft, BatchesByPieces) {
  const Extents shape{20, 64, 64};
  run_threads(1, [&](Communicator& comm) {
    Fft fft(comm, shape, whole(shape), whole(shape), {.axes = 2});
    std::vector<Complex> x(count_of(shape));
    each_index(whole(shape), [&](const Extents& at) {  // a wave each
      const double turn = static_cast<double>(at[0] * at[1] + (at[0] + 30) * at[2]) / 64;
      x[place(whole(shape), at)] = std::polar(1.0, 2 * std::numbers::pi * turn);
    });
    fft(x, x);
    each_index(whole(shape), [&](const Extents& at) {
      const double want = at[1] == at[0] && at[2] == at[0] + 30 ? 64 * 64 : 0;
      ASSERT_NEAR(std::abs(x[place(whole(shape), at)] - want), 0, 1e-8);
    });
  });
}

TEST(Fft, WhatIsTrueOfEveryTransform) {
  const Extents shape{9, 8, 10};
  run_threads(3, [&](Communicator& comm) {
    const Box from = Slab{0}.box(shape, comm.rank(), 3), to = Slab{2}.box(shape, comm.rank(), 3);
    Fft there(comm, shape, from, to, {.norm = FftNorm::kOrtho});
    Fft back(comm, shape, to, from, {.norm = FftNorm::kOrtho});
    std::mt19937 random(static_cast<unsigned>(comm.rank()));
    std::normal_distribution<double> normal;
    std::vector<Complex> x(from.count()), y(to.count()), z(from.count());
    for (Complex& value : x) value = {normal(random), normal(random)};
    there(x, y);
    double before = 0, after = 0;
    for (const Complex value : x) before += std::norm(value);
    for (const Complex value : y) after += std::norm(value);
    comm.all_reduce(scalar(before));
    comm.all_reduce(scalar(after));
    EXPECT_NEAR(before, after, 1e-9 * before);  // Parseval
    back(y, z, FftDirection::kInverse);
    for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(std::abs(z[i] - x[i]), 0, 1e-12);
    // A shift by one along the axis that is cut turns the phases.
    std::vector<Complex> shifted(from.count()), turned(to.count());
    std::vector<Complex> all(count_of(shape));
    comm.all_gather_v(x, all);
    each_index(from, [&](const Extents& at) {
      const Extents before_it{(at[0] + 8) % 9, at[1], at[2]};
      shifted[place(from, at)] = all[place(whole(shape), before_it)];
    });
    there(shifted, turned);
    each_index(to, [&](const Extents& at) {
      const Complex phase = std::polar(1.0, -2 * std::numbers::pi * static_cast<double>(at[0]) / 9);
      EXPECT_NEAR(std::abs(turned[place(to, at)] - y[place(to, at)] * phase), 0, 1e-11);
    });
  });
}

TEST(Fft, MorePiecesThanOne) {
  const Extents shape{64, 64, 128};  // large enough for stores past the caches
  run_threads(2, [&](Communicator& comm) {
    const Box from = Slab{0}.box(shape, comm.rank(), 2), to = Slab{1}.box(shape, comm.rank(), 2);
    Fft fft(comm, shape, from, to);
    EXPECT_EQ(fft.transposes(), 1u);
    Fft same(comm, shape, from, from);
    EXPECT_EQ(same.transposes(), 2u);
    std::vector<Complex> x(from.count()), y(to.count());
    // Two waves, whose spectrum is two numbers.
    each_index(from, [&](const Extents& at) {
      const auto wave = [&](double a, double b, double c) {
        const double turn = a * static_cast<double>(at[0]) / 64 +
                            b * static_cast<double>(at[1]) / 64 +
                            c * static_cast<double>(at[2]) / 128;
        return std::polar(1.0, 2 * std::numbers::pi * turn);
      };
      x[place(from, at)] = wave(3, 40, 5) + 2.0 * wave(50, 1, 100);
    });
    const double n = 64.0 * 64 * 128;
    const auto expect = [&](const Box& box, const std::vector<Complex>& got) {
      each_index(box, [&](const Extents& at) {
        const double want = at == Extents{3, 40, 5} ? n : at == Extents{50, 1, 100} ? 2 * n : 0;
        ASSERT_NEAR(std::abs(got[place(box, at)] - want), 0, 1e-6);
      });
    };
    for (int i = 0; i < 3; ++i) {
      fft(x, y);
      expect(to, y);
      auto in_place = x;
      same(in_place, in_place);
      expect(from, in_place);
    }
  });
}

template <typename E>
std::string told(const std::function<void()>& f) {
  try {
    f();
  } catch (const E& error) {
    return error.what();
  }
  return "";
}

TEST(Fft, WhatDoesNotFitIsRefusedByAll) {
  const Extents shape{6, 4};
  run_threads(3, [&](Communicator& comm) {
    const int rank = comm.rank();
    const Box from = Slab{0}.box(shape, rank, 3), to = Slab{1}.box(shape, rank, 3);
    const auto plan = [&](Extents s, Box f, Box t, FftOptions o) {
      return told<InvalidArgument>([&] { Fft(comm, s, f, t, o); });
    };
    EXPECT_NE(
        plan(rank == 1 ? Extents{6, 5} : shape, from, to, {}).find("rank 1 gives shape (6, 5)"),
        std::string::npos);
    EXPECT_NE(plan(shape, from, rank == 2 ? from : to, {}).find("to of ranks"), std::string::npos);
    EXPECT_NE(plan(shape, from, to, {.precision = rank == 1 ? DType::kFloat32 : DType::kFloat64})
                  .find("another precision"),
              std::string::npos);
    EXPECT_NE(plan(shape, from, to, {.axes = rank == 0 ? 3u : 2u}).find("3 axes of 2"),
              std::string::npos);
    EXPECT_NE(plan(shape, from, to, {.kind = FftKind::kRealToComplex}).find("reaches beyond"),
              std::string::npos);
    Fft fft(comm, shape, from, to);
    std::vector<Complex> x(from.count()), y(to.count());
    std::vector<Complex> small(1);
    const std::string what =
        told<InvalidArgument>([&] { fft(rank == 2 ? std::span(small) : std::span(x), y); });
    EXPECT_NE(what.find("in is complex128[1], expected complex128["), std::string::npos) << what;
    fft(x, y);  // can still be used
    if (comm.size() == 3) comm.barrier();
  });
}

TEST(Fft, PlansThatDifferAreRefusedByAll) {
  run_threads(2, [&](Communicator& comm) {
    const Extents shape{4, 4};
    const Box from = Slab{0}.box(shape, comm.rank(), 2);
    Fft one(comm, shape, from, from), other(comm, shape, from, from);
    std::vector<Complex> x(from.count());
    const std::string what = told<InvalidArgument>([&] { (comm.rank() == 0 ? one : other)(x, x); });
    EXPECT_NE(what.find("rank 1 executes another plan than rank 0"), std::string::npos) << what;
    one(x, x);  // can still be used
  });
}

}  // namespace
}  // namespace hocket
