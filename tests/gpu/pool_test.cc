// A pool whose workers are GPUs, real ones or pretended ones of tests/fake_cuda.
#include <gtest/gtest.h>

#include <deque>

#include "device_arrays.h"
#include "hocket/device_pool.h"
#include "hocket/group.h"

namespace hocket::gpu {
namespace {

constexpr std::size_t kCount = 100'003;

std::vector<float> numbers(int i) {
  std::vector<float> x(kCount);
  for (std::size_t k = 0; k < kCount; ++k)
    x[k] = static_cast<float>(k % 1000 * 8) + static_cast<float>(i);
  return x;
}

// A pool of up to four GPUs, and an array on each.
class PoolOfGpus : public testing::TestWithParam<int> {
 protected:
  struct OnGpu {
    std::shared_ptr<const cuda::DeviceContext> device;
    std::unique_ptr<cuda::DeviceBuffer> buffer;
    std::unique_ptr<cuda::OwnedStream> stream;
    ArrayView view;
  };

  void SetUp() override {
    const Machine here = machine();
    if (here.gpus == 0) GTEST_SKIP() << here.why_not;
    if (here.gpus < GetParam()) GTEST_SKIP() << GetParam() << " GPUs are wanted";
    for (int i = 0; i < GetParam(); ++i) {
      // In falling order: a worker's number is not its GPU's.
      const int ordinal = GetParam() - 1 - i;
      options_.devices.push_back(ordinal);
      OnGpu& one = arrays_.emplace_back();
      one.device = std::make_shared<cuda::DeviceContext>(driver(), ordinal);
      const cuda::DeviceGuard guard(*one.device);
      one.buffer = std::make_unique<cuda::DeviceBuffer>(one.device, kCount * sizeof(float));
      one.stream = std::make_unique<cuda::OwnedStream>(one.device);
      one.view = cuda_array(static_cast<float*>(one.buffer->data()), kCount, ordinal);
      views_.push_back(one.view);
      streams_.push_back(one.stream->get());
    }
    if (here.fake) options_.engines = {"local"};
  }
  // On the caller's stream of worker i, without waiting.
  void put(int i, std::vector<float> values) {
    const OnGpu& one = arrays_[static_cast<std::size_t>(i)];
    const cuda::DeviceGuard guard(*one.device);
    const auto& kept = sources_.emplace_back(std::move(values));
    cuda::copy(*driver(), one.view.data(), kept.data(), one.view.bytes(), one.stream->get());
  }
  // Behind what the caller's stream has.
  std::vector<float> get(int i) {
    const OnGpu& one = arrays_[static_cast<std::size_t>(i)];
    const cuda::DeviceGuard guard(*one.device);
    std::vector<float> values(kCount);
    cuda::copy(*driver(), values.data(), one.view.data(), one.view.bytes(), one.stream->get());
    EXPECT_TRUE(
        cuda::drain(*driver(), one.stream->get(), base::Deadline::in(std::chrono::seconds(20))));
    return values;
  }

  PoolOptions options_;
  std::deque<std::vector<float>> sources_;  // of copies that may be under way
  std::vector<OnGpu> arrays_;
  std::vector<ArrayView> views_;
  std::vector<StreamRef> streams_;
};

TEST_P(PoolOfGpus, OrdersItsCallsByTheCallersStreams) {
  DevicePool pool(options_);
  const int n = GetParam();
  std::vector<float> sum(kCount);
  for (int i = 0; i < n; ++i) {
    const auto x = numbers(i);
    for (std::size_t k = 0; k < kCount; ++k) sum[k] += x[k];
  }
  for (int round = 0; round < 5; ++round) {
    for (int i = 0; i < n; ++i) put(i, numbers(i));
    pool.all_reduce(views_, {.streams = streams_});
    for (int i = 0; i < n; ++i) ASSERT_EQ(get(i), sum) << "worker " << i;
    // From one worker's memory to all, at once after it was written.
    put(n - 1, numbers(round));
    pool.broadcast(views_[static_cast<std::size_t>(n - 1)], views_, {.streams = streams_});
    for (int i = 0; i < n; ++i) ASSERT_EQ(get(i), numbers(round)) << "worker " << i;
  }
}

TEST_P(PoolOfGpus, MoveBetweenHostAndWorkers) {
  DevicePool pool(options_);
  const auto n = static_cast<std::size_t>(GetParam());
  std::vector<float> whole;
  for (int i = 0; i < GetParam(); ++i) {
    const auto x = numbers(i);
    whole.insert(whole.end(), x.begin(), x.end());
  }
  pool.scatter(whole, views_, {.streams = streams_});
  for (int i = 0; i < GetParam(); ++i) ASSERT_EQ(get(i), numbers(i)) << "worker " << i;
  std::vector<float> again(n * kCount);
  const std::vector<ConstArrayView> in(views_.begin(), views_.end());
  pool.gather(in, again, {.streams = streams_});
  for (int i = 0; i < GetParam(); ++i) get(i);  // the streams have come so far
  EXPECT_EQ(again, whole);
}

TEST_P(PoolOfGpus, ReduceToOneAndExchangeHalos) {
  DevicePool pool(options_);
  const int n = GetParam();
  for (int i = 0; i < n; ++i) put(i, numbers(i));
  std::vector<std::size_t> seams;
  for (int i = 1; i < n; ++i) seams.push_back(static_cast<std::size_t>(i) * 1000);
  pool.exchange_halo(views_, {.rows = kCount}, seams, 10, {.streams = streams_});
  for (int i = 0; i < n; ++i) {
    const auto x = get(i);
    for (std::size_t k = 0; k < kCount; ++k) {
      const bool in_seam = k % 1000 < 10;
      const auto seam = static_cast<int>(k / 1000);
      const int from = in_seam && seam == i && i > 0           ? i - 1
                       : in_seam && seam == i + 1 && i + 1 < n ? i + 1
                                                               : i;
      ASSERT_EQ(x[k], numbers(0)[k % 1000] + static_cast<float>(from))
          << "worker " << i << ", element " << k;
      if (k > 5000) break;
    }
  }
  for (int i = 0; i < n; ++i) put(i, numbers(i));
  const std::vector<ConstArrayView> in(views_.begin(), views_.end());
  pool.reduce(in, views_.back(), {.op = ReduceOp::kMax, .streams = streams_});
  EXPECT_EQ(get(n - 1), numbers(n - 1));
  if (n > 1) {
    EXPECT_EQ(get(0), numbers(0));
  }
}

// Strips with gaps between them, in part of the arrays.
constexpr HaloShape kStrips{.outer = 3, .rows = 3333, .inner = 10};
constexpr std::size_t kInStrips = 3 * 3333 * 10;
constexpr std::size_t kOverlap = 7;

std::vector<ArrayView> strips_of(std::span<const ArrayView> views) {
  std::vector<ArrayView> strips;
  for (const ArrayView& view : views) strips.push_back(view.slice(0, kInStrips));
  return strips;
}

// The result that as many workers of the host compute from numbers(0), numbers(1), ...
std::vector<std::vector<float>> exchanged(int n, HaloOptions::Mode mode, std::size_t apart) {
  std::vector<std::vector<float>> all;
  for (int i = 0; i < n; ++i) all.push_back(numbers(i));
  std::vector<ArrayView> views(all.begin(), all.end());
  std::vector<std::size_t> seams;
  for (int i = 1; i < n; ++i) seams.push_back(static_cast<std::size_t>(i) * apart);
  DevicePool(n).exchange_halo(strips_of(views), kStrips, seams, kOverlap, {.mode = mode});
  return all;
}

TEST_P(PoolOfGpus, BlendHalosAsTheHostDoes) {
  DevicePool pool(options_);
  const int n = GetParam();
  for (const std::size_t apart : {std::size_t{1000}, kOverlap - 2}) {
    std::vector<std::size_t> seams;
    for (int i = 1; i < n; ++i) seams.push_back(static_cast<std::size_t>(i) * apart);
    for (int i = 0; i < n; ++i) put(i, numbers(i));
    pool.exchange_halo(strips_of(views_),
                       kStrips,
                       seams,
                       kOverlap,
                       {.mode = HaloOptions::Mode::kBlend, .streams = streams_});
    const auto wanted = exchanged(n, HaloOptions::Mode::kBlend, apart);
    for (int i = 0; i < n; ++i) {
      ASSERT_EQ(get(i), wanted[static_cast<std::size_t>(i)]) << "worker " << i;
    }
  }
}

TEST_P(PoolOfGpus, ExchangeHalosWithOtherPools) {
  // The GPUs of two processes, for which ranks that are threads stand.
  const int n = GetParam();
  if (n % 2 != 0) GTEST_SKIP() << "as many GPUs are wanted for each of two ranks";
  const auto each = static_cast<std::size_t>(n / 2);
  for (const auto mode : {HaloOptions::Mode::kSwap, HaloOptions::Mode::kBlend}) {
    for (int i = 0; i < n; ++i) put(i, numbers(i));
    run_threads(2, [&](Communicator& comm) {
      const std::size_t first = each * static_cast<std::size_t>(comm.rank());
      PoolOptions mine = options_;
      const auto begin = options_.devices.begin() + static_cast<std::ptrdiff_t>(first);
      mine.devices.assign(begin, begin + static_cast<std::ptrdiff_t>(each));
      DevicePool pool(mine);
      std::vector<std::size_t> seams;
      for (std::size_t i = 1; i < each; ++i) seams.push_back((first + i) * 1000);
      pool.exchange_halo(strips_of(std::span(views_).subspan(first, each)),
                         kStrips,
                         seams,
                         kOverlap,
                         {.mode = mode,
                          .across = &comm,
                          .previous_seam = first * 1000,
                          .next_seam = comm.rank() == 0 ? each * 1000 : 0,
                          .streams = std::span(streams_).subspan(first, each)});
    });
    const auto wanted = exchanged(n, mode, 1000);
    for (int i = 0; i < n; ++i) {
      ASSERT_EQ(get(i), wanted[static_cast<std::size_t>(i)]) << "worker " << i;
    }
  }
}

TEST_P(PoolOfGpus, RefuseArraysOfAnotherWorker) {
  DevicePool pool(options_);
  std::vector<float> host(kCount);
  std::vector<ArrayView> wrong = views_;
  wrong[0] = host;
  EXPECT_THROW(pool.all_reduce(wrong, {.streams = streams_}), InvalidArgument);
  PoolOptions bad = options_;
  bad.devices[0] = 99;
  EXPECT_THROW(DevicePool{bad}, InvalidArgument);
}

TEST(SharedPoolOfGpus, WorkersOnOneGpuReduceTheirArrays) {
  if (machine().gpus == 0) GTEST_SKIP() << machine().why_not;
  const auto device = std::make_shared<const cuda::DeviceContext>(driver(), 0);
  const cuda::DeviceGuard guard(*device);
  DevicePool pool(PoolOptions{.devices = {0, 0, 0}});
  const cuda::OwnedStream stream(device);
  std::deque<cuda::DeviceBuffer> buffers;
  std::vector<ArrayView> views;
  std::vector<std::vector<float>> values;
  for (int i = 0; i < 3; ++i) {
    values.push_back(numbers(i));
    buffers.emplace_back(device, kCount * sizeof(float));
    views.push_back(cuda_array(static_cast<float*>(buffers.back().data()), kCount, 0));
    cuda::copy(
        *driver(), views.back().data(), values.back().data(), views[0].bytes(), stream.get());
  }
  const std::vector<StreamRef> streams(3, stream.get());
  pool.all_reduce(views, {.streams = streams});
  std::vector<float> sum(kCount);
  for (const ArrayView& view : views) {
    cuda::copy(*driver(), sum.data(), view.data(), view.bytes(), stream.get());
    ASSERT_TRUE(cuda::drain(*driver(), stream.get(), base::Deadline::in(std::chrono::seconds(20))));
    for (std::size_t k = 0; k < kCount; ++k) {
      ASSERT_EQ(sum[k], values[0][k] + values[1][k] + values[2][k]) << k;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, PoolOfGpus, testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace hocket::gpu
