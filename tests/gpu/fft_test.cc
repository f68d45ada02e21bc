// Fourier transforms of arrays in GPUs' memory, against the same of the host's.
#include "hocket/fft.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <random>

#include "arrays/fft/plan.h"
#include "device_arrays.h"

namespace hocket::gpu {
namespace {

class FftOnGpus : public testing::Test {
 protected:
  void SetUp() override {
    if (machine().gpus == 0) GTEST_SKIP() << machine().why_not;
    why_not_ = run(1, {}, [](GpuRank& self) {
      Fft(self.comm, {2}, Box({0}, {2}), Box({0}, {2}), {.gpu = self.device->ordinal()});
    });
    if (why_not_.find("by cuFFT") != std::string::npos) GTEST_SKIP() << why_not_;
  }

 private:
  std::string why_not_;
};

// A box a rank; rows, columns, pencils, or all with the last rank.
Box spread(const Extents& shape, const Communicator& comm, int form) {
  const int rank = comm.rank(), ranks = comm.size();
  if (form == 3) {
    const bool has_all = rank + 1 == ranks;
    return has_all ? Box(Extents(shape.size()), shape)
                   : Box(Extents(shape.size()), Extents(shape.size()));
  }
  if (form == 2) {
    std::vector<bool> whole(shape.size());
    whole.back() = true;
    return fft::cut(shape, static_cast<std::size_t>(ranks), whole)[static_cast<std::size_t>(rank)];
  }
  const auto axis = std::min<std::size_t>(static_cast<std::size_t>(form), shape.size() - 1);
  return Slab{axis}.box(shape, ranks - 1 - rank, ranks);
}

template <typename In, typename Out>
void compare(GpuRank& self,
             const Extents& shape,
             FftOptions options,
             int from,
             int to,
             bool in_place,
             std::size_t slice_bytes = fft::kSliceBytes) {
  const bool back = options.kind == FftKind::kComplexToReal;
  const Extents half = Fft::spectrum_of(shape);
  const Box source = spread(back ? half : shape, self.comm, from);
  const Box target = spread(options.kind == FftKind::kRealToComplex ? half : shape, self.comm, to);
  options.planning = FftPlanning::kEstimated;
  Fft host(self.comm, shape, source, target, options);
  options.gpu = self.device->ordinal();
  const auto gpu = fft::gpu_plan(self.comm, shape, source, target, options, slice_bytes);
  std::mt19937 random(static_cast<unsigned>(self.comm.rank()));
  std::normal_distribution<double> normal;
  for (int round = 0; round < 2; ++round) {
    std::vector<In> x(source.count());
    for (In& value : x) {
      if constexpr (std::is_floating_point_v<In>) {
        value = static_cast<In>(normal(random));
      } else {
        value = {static_cast<typename In::value_type>(normal(random)),
                 static_cast<typename In::value_type>(normal(random))};
      }
    }
    if (back) {  // a real array's spectrum
      auto options_there = options;
      options_there.gpu.reset();
      options_there.kind = FftKind::kRealToComplex;
      Fft there(self.comm, shape, spread(shape, self.comm, from), source, options_there);
      std::vector<Out> real(spread(shape, self.comm, from).count());
      for (Out& value : real) value = Out(static_cast<float>(normal(random)));
      if constexpr (std::is_floating_point_v<Out>) there(real, x);
    }
    std::vector<Out> wanted(target.count());
    host(x, wanted);
    OnGpu<In> in(self, source.count());
    OnGpu<Out> out(self, target.count());
    in.set(x);
    in_place = in_place && std::is_same_v<In, Out> && source.count() == target.count();
    gpu->execute(in.view(), in_place ? in.view() : out.view(), {}, StreamRef(self.stream.get()));
    std::vector<Out> got = out.get();
    if constexpr (std::is_same_v<In, Out>) {
      if (in_place) got = in.get();
    }
    if (!in_place && in.get() != x) throw std::runtime_error("the input has changed");
    double worst = 0, most = 1;
    for (std::size_t i = 0; i < got.size(); ++i) {
      worst = std::max<double>(worst, std::abs(got[i] - wanted[i]));
      most = std::max<double>(most, std::abs(wanted[i]));
    }
    const bool is_double = options.precision == DType::kFloat64;
    if (!(worst / most < (is_double ? 1e-12 : 1e-5))) {
      throw std::runtime_error(to_string(source) + " to " + to_string(target) + ": off by " +
                               std::to_string(worst) + " of " + std::to_string(most));
    }
  }
}

TEST_F(FftOnGpus, IsWhatTheHostMakesOfIt) {
  using C = std::complex<double>;
  using F = std::complex<float>;
  const std::vector<Extents> shapes = {{1}, {17}, {12, 5}, {7, 4, 6}, {4, 3, 2, 5}};
  for (const int ranks : {1, 2, 3, 5}) {
    const std::string failure = run(ranks, {"local"}, [&](GpuRank& self) {
      int turn = ranks;
      for (const Extents& shape : shapes) {
        for (std::size_t axes = 1; axes <= std::min<std::size_t>(3, shape.size()); ++axes) {
          const FftOptions options{.axes = axes, .norm = FftNorm::kOrtho};
          const int from = turn % 4, to = turn / 4 % 4;
          ++turn;
          compare<C, C>(self, shape, options, from, to, turn % 2 == 0);
          auto real = options;
          real.kind = FftKind::kRealToComplex;
          compare<double, C>(self, shape, real, to, from, false);
          real.kind = FftKind::kComplexToReal;
          compare<C, double>(self, shape, real, from, to, false);
        }
      }
      const FftOptions single{.precision = DType::kFloat32};
      compare<F, F>(self, {6, 5, 7}, single, 0, 1, false);
    });
    EXPECT_EQ(failure, "") << ranks << " ranks";
  }
}

// As large arrays do: as a leg makes them, as they come, or both; some are empty.
TEST_F(FftOnGpus, SlicesTravelBesideTransforms) {
  using C = std::complex<double>;
  for (const int ranks : {2, 4}) {
    const std::string failure = run(ranks, {"local"}, [&](GpuRank& self) {
      const Extents shape{13, 6, 10};
      for (const std::size_t slice_bytes : {std::size_t{64}, std::size_t{2000}}) {
        for (int turn = 0; turn < 16; ++turn) {
          const int from = turn % 4, to = turn / 4;
          FftOptions options{.norm = FftNorm::kOrtho};
          compare<C, C>(self, shape, options, from, to, turn % 3 == 0, slice_bytes);
          options.kind = FftKind::kRealToComplex;
          compare<double, C>(self, shape, options, from, to, false, slice_bytes);
          options.kind = FftKind::kComplexToReal;
          compare<C, double>(self, shape, options, from, to, false, slice_bytes);
        }
      }
    });
    EXPECT_EQ(failure, "") << ranks << " ranks";
  }
}

TEST_F(FftOnGpus, StreamsFollowEachOther) {
  const std::string failure = run(2, {"local"}, [&](GpuRank& self) {
    using C = std::complex<double>;
    const Extents shape{8, 6, 4};
    const Box box = spread(shape, self.comm, 0);
    Fft fft(self.comm, shape, box, box, {.gpu = self.device->ordinal()});
    std::vector<C> x(box.count());
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = {double(i % 7), double(i % 5)};
    OnGpu<C> array(self, x.size());
    array.set(x);
    const cuda::OwnedStream other(self.device);
    const Gpu gpu(self.device->ordinal());
    for (int i = 0; i < 10; ++i) {
      fft(array.view(), array.view(), FftDirection::kForward, self.stream.get());
      gpu.order(self.stream.get(), other.get());
      fft(array.view(), array.view(), FftDirection::kInverse, other.get());
      gpu.order(other.get(), self.stream.get());
    }
    const auto got = array.get();
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (std::abs(got[i] - x[i]) > 1e-9) throw std::runtime_error("another array came back");
    }
  });
  EXPECT_EQ(failure, "");
}

TEST_F(FftOnGpus, WhatDoesNotFitIsRefusedByAll) {
  const std::string failure = run(2, {"local"}, [&](GpuRank& self) {
    using C = std::complex<double>;
    const auto told = [](const std::function<void()>& f) -> std::string {
      try {
        f();
      } catch (const InvalidArgument& error) {
        return error.what();
      }
      return "nothing";
    };
    const auto expect = [](const std::string& text, const std::string& part) {
      if (text.find(part) == std::string::npos) throw std::runtime_error(text + " has no " + part);
    };
    const Extents shape{4, 6};
    const Box box = spread(shape, self.comm, 0);
    FftOptions options;
    if (self.comm.rank() == 1) options.gpu = self.device->ordinal();
    expect(told([&] { Fft(self.comm, shape, box, box, options); }),
           "memory (a GPU's or the host's)");
    options.gpu = self.device->ordinal();
    Fft fft(self.comm, shape, box, box, options);
    std::vector<C> host(box.count());
    OnGpu<C> x(self, box.count());
    x.set(host);
    expect(
        told([&] {
          fft(self.comm.rank() == 0 ? ArrayView(host) : x.view(), x.view(), {}, self.stream.get());
        }),
        "in lies in the host's memory");
    if (machine().gpus > 1) {
      const auto other = Gpu(1 - self.device->ordinal()).context();
      const cuda::DeviceBuffer elsewhere(other, box.count() * sizeof(C));
      const auto far = cuda_array(static_cast<C*>(elsewhere.data()), box.count(), other->ordinal());
      expect(told([&] { fft(x.view(), far, {}, self.stream.get()); }),
             "out lies on GPU " + std::to_string(other->ordinal()));
      const auto silent = cuda_array(static_cast<C*>(elsewhere.data()), box.count());
      expect(told([&] { fft(x.view(), silent, {}, self.stream.get()); }),
             "out lies on GPU " + std::to_string(other->ordinal()));
    }
    const auto claimed = cuda_array(host.data(), box.count());
    expect(told([&] { fft(claimed, x.view(), {}, self.stream.get()); }),
           "in is said to lie in a GPU's memory and does not");
    fft(x.view(), x.view(), {}, self.stream.get());
    x.get();
  });
  EXPECT_EQ(failure, "");
}

TEST_F(FftOnGpus, TheDriverIsNotAskedWhereAnArrayLiesThatSaysIt) {
  if (!machine().fake) GTEST_SKIP() << "real drivers do not count their calls";
  const auto calls = reinterpret_cast<long (*)(const char*)>(
      ::dlsym(::dlopen("libcuda.so.1", RTLD_NOW), "fake_cuda_calls"));
  const std::string failure = run(1, {}, [&](GpuRank& self) {
    using C = std::complex<double>;
    const Extents shape{4, 6};
    const Box box({0, 0}, shape);
    Fft fft(self.comm, shape, box, box, {.gpu = self.device->ordinal()});
    OnGpu<C> x(self, box.count());
    x.set(std::vector<C>(box.count()));
    const auto asked = [&](ArrayView array) {
      const long before = calls("cuPointerGetAttributes");
      fft(array, array, {}, self.stream.get());
      return calls("cuPointerGetAttributes") - before;
    };
    const auto silent = cuda_array(static_cast<C*>(x.view().data()), box.count());
    if (asked(silent) != 2 || asked(x.view()) != 0) throw std::runtime_error("asked otherwise");
    x.get();
  });
  EXPECT_EQ(failure, "");
}

}  // namespace
}  // namespace hocket::gpu
