// Products of matrices in GPUs' memory, against sums written out.
#include "hocket/matmul.h"

#include <gtest/gtest.h>

#include <complex>

#include "device_arrays.h"
#include "matmul_reference.h"

namespace hocket::gpu {
namespace {

using matmul_reference::Complex;
using matmul_reference::Drawn;

class MatmulOnGpus : public testing::Test {
 protected:
  void SetUp() override {
    if (machine().gpus == 0) GTEST_SKIP() << machine().why_not;
    const std::string why_not = run(1, {}, [](GpuRank& self) {
      Matmul(self.comm, {2, 2, 2}, {}, {}, {}, {.gpu = self.device->ordinal()});
    });
    if (why_not.find("by cuBLAS") != std::string::npos) GTEST_SKIP() << why_not;
  }
};

template <typename T, typename R>
void try_one(GpuRank& self, std::mt19937& random, MatmulForm form) {
  const Drawn<T, R> drawn(self.comm.rank(), self.comm.size(), random);
  const MatmulOptions options{
      .dtype = dtype_of<T>, .result = dtype_of<R>, .form = form, .gpu = self.device->ordinal()};
  Matmul product(self.comm, drawn.size, drawn.a, drawn.b, drawn.d, options);
  OnGpu<T> a(self, drawn.my_a.size()), b(self, drawn.my_b.size());
  OnGpu<R> c(self, drawn.my_c.size()), d(self, drawn.wanted.size());
  a.set(drawn.my_a);
  b.set(drawn.my_b);
  c.set(drawn.my_c);
  for (int turn = 0; turn < 3; ++turn) {  // the last one in place
    d.set(std::vector<R>(drawn.wanted.size(), matmul_reference::as<R>(77)));
    OnGpu<R>& out = turn == 2 ? c : d;
    product(a.view(), b.view(), c.view(), out.view(), drawn.scale, self.stream.get());
    if (out.get() != drawn.wanted) throw std::runtime_error("wrong: " + drawn.text());
  }
  if (a.get() != drawn.my_a || b.get() != drawn.my_b) throw std::runtime_error("a factor changed");
}

TEST_F(MatmulOnGpus, IsWhatTheSumsSay) {
  for (const MatmulForm form : {MatmulForm::kGathered, MatmulForm::kReduced}) {
    for (const int ranks : {1, 2, 3, 4}) {
      const std::string failure = run(ranks, {"local"}, [&](GpuRank& self) {
        std::mt19937 random(static_cast<unsigned>(self.comm.size()) * 17);
        for (int i = 0; i < 3; ++i) {
          try_one<double, double>(self, random, form);
          try_one<float, float>(self, random, form);
          try_one<std::complex<float>, std::complex<float>>(self, random, form);
          try_one<Complex, Complex>(self, random, form);
          try_one<float16, float16>(self, random, form);
          try_one<float16, float>(self, random, form);
          try_one<bfloat16, bfloat16>(self, random, form);
          try_one<bfloat16, float>(self, random, form);
          try_one<float8_e4m3, float8_e4m3>(self, random, form);
          try_one<float8_e4m3, float>(self, random, form);
          try_one<float8_e5m2, float8_e5m2>(self, random, form);
          try_one<float8_e5m2, float16>(self, random, form);
          try_one<float8_e4m3, bfloat16>(self, random, form);
        }
      });
      EXPECT_EQ(failure, "") << ranks << " ranks, form " << static_cast<int>(form);
    }
  }
}

// More than a panel; of whole numbers that are small, so that sums are exact.
template <typename T>
void long_inner_extent(GpuRank& self, MatmulForm form) {
  const std::size_t m = 32, n = 32, k = 300'000;
  const auto size = static_cast<std::size_t>(self.comm.size());
  const auto me = static_cast<std::size_t>(self.comm.rank());
  // A by columns and B by rows, as they are, and D by rows.
  const MatmulOperand columns{.spread = Slab{1}}, rows{.spread = Slab{0}};
  Matmul product(self.comm,
                 {m, n, k},
                 columns,
                 rows,
                 rows,
                 {.dtype = dtype_of<T>, .form = form, .gpu = self.device->ordinal()});
  const Box mine = Slab{1}.box({m, k}, self.comm.rank(), self.comm.size());
  const std::size_t begin = mine.lower()[1], width = mine.shape()[1];
  const auto left = [](std::size_t i, std::size_t l) { return T((i + l) % 3); };
  const auto right = [](std::size_t l, std::size_t j) { return T((l * 5 + j) % 4); };
  std::vector<T> a(m * width), b(width * n);
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t l = 0; l < width; ++l) a[i * width + l] = left(i, begin + l);
  }
  for (std::size_t l = 0; l < width; ++l) {
    for (std::size_t j = 0; j < n; ++j) b[l * n + j] = right(begin + l, j);
  }
  OnGpu<T> on_a(self, a.size()), on_b(self, b.size()), on_d(self, m / size * n);
  on_a.set(a);
  on_b.set(b);
  for (int turn = 0; turn < 3; ++turn) {
    product(on_a.view(), on_b.view(), on_d.view(), 1, self.stream.get());
  }
  const std::vector<T> d = on_d.get();
  for (std::size_t i = 0; i < m / size; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      double sum = 0;  // of one period, 12, and what is left
      for (std::size_t l = 0; l < 12; ++l) sum += left(i + me * m / size, l) * right(l, j);
      sum *= static_cast<double>(k / 12);
      static_assert(k % 12 == 0);
      if (d[i * n + j] != T(sum)) throw std::runtime_error("wrong at " + std::to_string(i));
    }
  }
}

TEST_F(MatmulOnGpus, PanelsOfALongInnerExtentAreAllThere) {
  for (const MatmulForm form : {MatmulForm::kGathered, MatmulForm::kReduced}) {
    const std::string failure =
        run(2, {"local"}, [&](GpuRank& self) { long_inner_extent<double>(self, form); });
    EXPECT_EQ(failure, "") << static_cast<int>(form);
  }
}

// Whole numbers, whose sums are exact and are rounded once; `n` numbers lie one after the other.
template <typename T>
void halves_with_an_addend(GpuRank& self, std::size_t n) {
  const std::size_t m = 12, k = 40;
  const MatmulOperand rows{.spread = Slab{0}};
  MatmulOptions options{.dtype = dtype_of<T>, .form = MatmulForm::kGathered};
  Matmul on_host(self.comm, {m, n, k}, rows, rows, rows, options);
  options.gpu = self.device->ordinal();
  Matmul on_gpu(self.comm, {m, n, k}, rows, rows, rows, options);
  const auto size = static_cast<std::size_t>(self.comm.size());
  const auto values = [&](std::size_t count, std::size_t seed) {
    std::vector<T> made(count / size);
    const std::size_t first = static_cast<std::size_t>(self.comm.rank()) * made.size();
    for (std::size_t i = 0; i < made.size(); ++i) {
      made[i] = T(static_cast<float>((first + i) * seed % 11) - 4);
    }
    return made;
  };
  const std::vector<T> a = values(m * k, 7), b = values(k * n, 5), c = values(m * n, 3);
  std::vector<T> wanted(c.size());
  OnGpu<T> on_a(self, a.size()), on_b(self, b.size()), on_c(self, c.size()), on_d(self, c.size());
  on_a.set(a);
  on_b.set(b);
  on_c.set(c);
  const auto check = [&](const char* what) {
    if (on_d.get() != wanted) throw std::runtime_error(std::string("wrong ") + what);
  };
  on_host(a, b, c, wanted, {.alpha = 3, .beta = -2});
  on_gpu(on_a.view(),
         on_b.view(),
         on_c.view(),
         on_d.view(),
         {.alpha = 3, .beta = -2},
         self.stream.get());
  check("with an addend");
  on_host(a, b, wanted, 3);
  on_gpu(on_a.view(), on_b.view(), on_d.view(), 3, self.stream.get());
  check("without one");
}

TEST_F(MatmulOnGpus, SumsOfHalvesAreRoundedOneByOneOrByFour) {
  for (const std::size_t n : {63, 64}) {
    const std::string failure = run(2, {"local"}, [&](GpuRank& self) {
      halves_with_an_addend<float16>(self, n);
      halves_with_an_addend<bfloat16>(self, n);
    });
    EXPECT_EQ(failure, "") << n;
  }
}

// A and B as cuBLASLt takes them, along the inner extent, and the product that the host computes.
template <typename A, typename B, typename R>
void eight_bits(GpuRank& self,
                const MatmulSize& size,
                MatmulForm form,
                const MatrixSpread& result) {
  const MatmulOperand a{.op = MatrixOp::kTranspose, .order = MemoryOrder::kFortran},
      b{.order = MemoryOrder::kFortran}, d{.spread = result, .order = MemoryOrder::kFortran};
  MatmulOptions options{
      .dtype = dtype_of<A>, .dtype_b = dtype_of<B>, .result = dtype_of<R>, .form = form};
  Matmul on_host(self.comm, size, a, b, d, options);
  options.gpu = self.device->ordinal();
  Matmul on_gpu(self.comm, size, a, b, d, options);
  std::mt19937 random(static_cast<unsigned>(self.comm.rank()));
  const auto make = [&]<typename T>(
                        T, const MatrixSpread& spread, std::size_t rows, std::size_t n) {
    std::uniform_int_distribution<int> some(-2, 2);
    std::vector<T> values(
        count_of(local_shape(spread, {rows, n}, self.comm.rank(), self.comm.size())));
    for (T& value : values) value = T(static_cast<float>(some(random)));
    return values;
  };
  const std::vector<A> my_a = make(A(), a.spread, size.k, size.m);
  const std::vector<B> my_b = make(B(), b.spread, size.k, size.n);
  const std::vector<R> my_c = make(R(), result, size.m, size.n);
  std::vector<R> wanted(my_c.size());
  on_host(my_a, my_b, my_c, wanted, {.alpha = 0.5, .beta = -2});
  OnGpu<A> on_a(self, my_a.size());
  OnGpu<B> on_b(self, my_b.size());
  OnGpu<R> on_c(self, my_c.size()), on_d(self, my_c.size());
  on_a.set(my_a);
  on_b.set(my_b);
  on_c.set(my_c);
  for (int turn = 0; turn < 2; ++turn) {
    on_gpu(on_a.view(),
           on_b.view(),
           on_c.view(),
           on_d.view(),
           {.alpha = 0.5, .beta = -2},
           self.stream.get());
    if (on_d.get() != wanted) throw std::runtime_error("wrong by " + on_gpu.library());
  }
  const bool may = !(std::is_same_v<A, float8_e5m2> && std::is_same_v<B, float8_e5m2>);
  const bool fits = size.k % 64 == 0 && size.m % 64 == 0;
  const bool is_narrow = on_gpu.library().starts_with("cuBLASLt");
  // Some GPUs do not support them.
  if (machine().fake ? is_narrow != (may && fits) : is_narrow && !(may && fits)) {
    throw std::runtime_error("multiplied by " + on_gpu.library());
  }
}

TEST_F(MatmulOnGpus, EightBitsAreMultipliedAsTheyAreWhereTheyFit) {
  for (const MatmulForm form : {MatmulForm::kGathered, MatmulForm::kReduced}) {
    for (const int ranks : {1, 4}) {
      const std::string failure = run(ranks, {"local"}, [&](GpuRank& self) {
        for (const MatmulSize& size : {MatmulSize{64, 24, 192}, {64, 16, 72}, {64, 8, 0}}) {
          for (const MatrixSpread& result : {MatrixSpread(Slab{0}), MatrixSpread(Replicated{})}) {
            eight_bits<float8_e4m3, float8_e4m3, float>(self, size, form, result);
            eight_bits<float8_e4m3, float8_e5m2, float8_e4m3>(self, size, form, result);
            eight_bits<float8_e5m2, float8_e4m3, bfloat16>(self, size, form, result);
            eight_bits<float8_e5m2, float8_e5m2, float8_e5m2>(self, size, form, result);
          }
        }
      });
      EXPECT_EQ(failure, "") << ranks << " ranks, form " << static_cast<int>(form);
    }
  }
}

TEST_F(MatmulOnGpus, EightBitsThatBeginElsewhereAreRefusedByAll) {
  const std::string failure = run(2, {"local"}, [&](GpuRank& self) {
    const MatmulOperand a{.op = MatrixOp::kTranspose, .order = MemoryOrder::kFortran},
        b{.order = MemoryOrder::kFortran};
    Matmul product(
        self.comm,
        {32, 32, 32},
        a,
        b,
        b,
        {.dtype = DType::kFloat8E4M3, .result = DType::kFloat32, .gpu = self.device->ordinal()});
    if (!product.library().starts_with("cuBLASLt")) return;
    OnGpu<float8_e4m3> x(self, 513), y(self, 512);
    OnGpu<float> out(self, 512);
    const auto* const other = static_cast<const float8_e4m3*>(x.view().data());
    const ConstArrayView shifted = cuda_array(other + 1, 512);
    std::string text;
    try {
      product(self.comm.rank() == 1 ? shifted : ConstArrayView(y.view()), y.view(), out.view());
    } catch (const InvalidArgument& error) {
      text = error.what();
    }
    if (text.find("a does not begin at a multiple of 16 bytes") == std::string::npos) {
      throw std::runtime_error("said: " + text);
    }
  });
  EXPECT_EQ(failure, "");
}

TEST_F(MatmulOnGpus, StreamsFollowEachOther) {
  const std::string failure = run(2, {"local"}, [&](GpuRank& self) {
    const MatmulOperand rows{.spread = Slab{0}};
    const MatmulOptions options{.gpu = self.device->ordinal()};
    Matmul product(self.comm, {64, 64, 64}, rows, rows, rows, options);
    // A permutation, which comes back to itself after 64 products.
    std::vector<double> turn(32 * 64), x(32 * 64);
    for (std::size_t i = 0; i < 32; ++i) {
      const std::size_t row = i + 32 * static_cast<std::size_t>(self.comm.rank());
      turn[i * 64 + (row + 1) % 64] = 1;
      for (std::size_t j = 0; j < 64; ++j) x[i * 64 + j] = double((row * 7 + j) % 11);
    }
    OnGpu<double> by(self, turn.size()), here(self, x.size()), there(self, x.size());
    by.set(turn);
    here.set(x);
    const cuda::OwnedStream other(self.device);
    const Gpu gpu(self.device->ordinal());
    for (int i = 0; i < 32; ++i) {
      product(by.view(), here.view(), there.view(), 1, self.stream.get());
      gpu.order(self.stream.get(), other.get());
      product(by.view(), there.view(), here.view(), 1, other.get());
      gpu.order(other.get(), self.stream.get());
    }
    if (here.get() != x) throw std::runtime_error("another matrix came back");
  });
  EXPECT_EQ(failure, "");
}

TEST_F(MatmulOnGpus, WhatDoesNotFitIsRefusedByAll) {
  const std::string failure = run(2, {"local"}, [&](GpuRank& self) {
    const auto expect = [](const std::function<void()>& f, const std::string& part) {
      std::string text = "nothing";
      try {
        f();
      } catch (const InvalidArgument& error) {
        text = error.what();
      }
      if (text.find(part) == std::string::npos) throw std::runtime_error(text + " has no " + part);
    };
    const MatmulOperand rows{.spread = Slab{0}};
    const bool is_last = self.comm.rank() == 1;
    MatmulOptions options;
    if (is_last) options.gpu = self.device->ordinal();
    expect([&] { Matmul(self.comm, {4, 4, 4}, rows, rows, rows, options); },
           "memory (a GPU's or the host's)");
    options.gpu = self.device->ordinal();
    Matmul product(self.comm, {4, 4, 4}, rows, rows, rows, options);
    std::vector<double> host(8, 1);
    OnGpu<double> x(self, 8), y(self, 8);
    x.set(host);
    const auto call = [&](ArrayView a, ArrayView d) {
      product(a, x.view(), d, 1, self.stream.get());
    };
    expect([&] { call(is_last ? ArrayView(host) : x.view(), y.view()); },
           "a is in the host's memory");
    expect([&] { call(x.view(), is_last ? x.view() : y.view()); }, "d overlaps a or b");
    const auto claimed = cuda_array(host.data(), host.size());
    expect([&] { call(claimed, y.view()); }, "a is said to lie in a GPU's memory and does not");
    if (machine().gpus > 1) {
      const auto other = Gpu(1 - self.device->ordinal()).context();
      const cuda::DeviceBuffer elsewhere(other, 64);
      expect([&] { call(x.view(), cuda_array(static_cast<double*>(elsewhere.data()), 8)); },
             "d lies on GPU " + std::to_string(other->ordinal()));
    }
    Matmul on_host(self.comm, {4, 4, 4}, rows, rows, rows);
    expect([&] { on_host(x.view(), x.view(), y.view()); }, "a is in a GPU's memory");
    std::vector<double> d(8);
    expect([&] { on_host(host, host, d, 1, self.stream.get()); }, "stream is of GPUs");
    call(x.view(), y.view());
    if (y.get() != std::vector<double>(8, 4)) throw std::runtime_error("wrong after refusals");
  });
  EXPECT_EQ(failure, "");
}

}  // namespace
}  // namespace hocket::gpu
