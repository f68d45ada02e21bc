// The pool of workers, on the host.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <complex>
#include <functional>
#include <limits>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include "hocket/device_pool.h"
#include "hocket/group.h"

namespace hocket {
namespace {

using Arrays = std::vector<std::vector<float>>;

// Values that differ for every worker and place, exact in float.
Arrays arrays(int n, std::size_t count) {
  Arrays all(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].resize(count);
    for (std::size_t k = 0; k < count; ++k) {
      all[i][k] = static_cast<float>(k % 1000 * 8 + (i + 1) * (i + 2));
    }
  }
  return all;
}

std::vector<ArrayView> views(Arrays& all) { return {all.begin(), all.end()}; }
std::vector<ConstArrayView> const_views(const Arrays& all) { return {all.begin(), all.end()}; }

std::vector<float> sum_of(const Arrays& all, std::size_t first, std::size_t last) {
  std::vector<float> sum(all[first].size());
  for (std::size_t i = first; i < last; ++i) {
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += all[i][k];
  }
  return sum;
}

class Pools : public testing::TestWithParam<int> {};

TEST_P(Pools, RunInThreadsOfTheirOwn) {
  const int n = GetParam();
  DevicePool pool(n);
  std::vector<std::thread::id> threads(static_cast<std::size_t>(n));
  std::vector<int> indices(threads.size(), -1);
  pool.map([&](PoolWorker& worker) {
    const auto i = static_cast<std::size_t>(worker.index());
    threads[i] = std::this_thread::get_id();
    indices[i] = worker.index() * worker.size();
    EXPECT_EQ(worker.device(), kAnyDevice);
  });
  EXPECT_EQ(std::set(threads.begin(), threads.end()).size(), threads.size());
  for (std::size_t i = 0; i < indices.size(); ++i) EXPECT_EQ(indices[i], static_cast<int>(i) * n);
}

// Each begins when the one before has said so, or has ended, by an exception too.
TEST_P(Pools, BeginInTurn) {
  const int n = GetParam();
  DevicePool pool(n);
  for (const bool says : {true, false}) {
    // unguarded if no worker calls `begun`: they then run one after the other
    std::vector<int> order;
    std::mutex mutex;
    const auto enter = [&](PoolWorker& worker) {
      if (!says) {
        order.push_back(worker.index());
        if (worker.index() == 1) throw std::runtime_error("one");
        return;
      }
      {
        const std::lock_guard lock(mutex);
        order.push_back(worker.index());
      }
      worker.begun();
      worker.begun();
    };
    std::vector<int> members(static_cast<std::size_t>(n));
    std::iota(members.rbegin(), members.rend(), 0);
    const PoolCallOptions in_turn{.start = PoolCallOptions::Start::kInTurn};
    if (!says && n > 1) {
      EXPECT_THROW(pool.map(members, enter, in_turn), std::runtime_error);
    } else {
      pool.map(members, enter, in_turn);
    }
    EXPECT_EQ(order, members);
  }
}

TEST_P(Pools, MoveArrays) {
  const int n = GetParam();
  const auto size = static_cast<std::size_t>(n);
  DevicePool pool(n);
  for (const std::size_t count : {0u, 1u, 1000u, 100'003u}) {
    const Arrays in = arrays(n, count);
    Arrays out(size, std::vector<float>(count, -1));
    pool.broadcast(in[size - 1], views(out));
    for (const auto& one : out) EXPECT_EQ(one, in[size - 1]);

    std::vector<int> from(size);
    for (int i = 0; i < n; ++i) from[static_cast<std::size_t>(i)] = (i + 1) % n;
    pool.distribute(const_views(in), from, views(out));
    for (std::size_t i = 0; i < size; ++i) EXPECT_EQ(out[i], in[(i + 1) % size]);

    std::vector<float> whole(size * count, -1);
    pool.gather(const_views(in), whole);
    for (std::size_t i = 0; i < size * count; ++i) ASSERT_EQ(whole[i], in[i / count][i % count]);

    Arrays everything(size, std::vector<float>(size * count, -1));
    pool.all_gather(const_views(in), views(everything));
    for (const auto& one : everything) EXPECT_EQ(one, whole);

    // Parts of different sizes.
    Arrays parts(size);
    std::size_t left = whole.size();
    for (std::size_t i = 0; i + 1 < size; ++i) {
      parts[i].resize(left / 3);
      left -= parts[i].size();
    }
    parts[size - 1].resize(left);
    pool.scatter(whole, views(parts));
    std::vector<float> again;
    for (const auto& part : parts) again.insert(again.end(), part.begin(), part.end());
    EXPECT_EQ(again, whole);
  }
}

TEST_P(Pools, AllReduceInPlace) {
  const int n = GetParam();
  const auto size = static_cast<std::size_t>(n);
  DevicePool pool(n);
  for (const std::size_t count : {0u, 1u, 17u, 5000u, 100'003u}) {
    const Arrays in = arrays(n, count);
    Arrays inout = in;
    pool.all_reduce(views(inout));
    for (const auto& one : inout) EXPECT_EQ(one, sum_of(in, 0, size));
    inout = in;
    pool.all_reduce(views(inout), {.op = ReduceOp::kMax});
    for (const auto& one : inout) EXPECT_EQ(one, in.back());

    Arrays out(size, std::vector<float>(count, -1));
    pool.all_reduce(const_views(in), views(out));
    for (const auto& one : out) EXPECT_EQ(one, sum_of(in, 0, size));

    for (int group = 1; group <= n; ++group) {
      const auto g = static_cast<std::size_t>(group);
      inout = in;
      pool.all_reduce(views(inout), {.group = group});
      for (std::size_t i = 0; i < size; ++i) {
        EXPECT_EQ(inout[i], sum_of(in, i / g * g, std::min(size, (i / g + 1) * g)));
      }
    }
  }
}

TEST_P(Pools, ReduceAnyNumberOfArrays) {
  const int n = GetParam();
  DevicePool pool(n);
  for (const int m : {1, 2, 7}) {
    Arrays in = arrays(m, 3001);
    std::vector<float> out(3001, -1);
    const auto wanted = sum_of(in, 0, in.size());
    pool.reduce(const_views(in), out);
    EXPECT_EQ(out, wanted);
    pool.reduce(const_views(in), in.back());
    EXPECT_EQ(in.back(), wanted);
  }
}

// Additions whose result depends on their order: the same as from left to right, however many
// workers share them.
TEST_P(Pools, AddInTheOrderOfTheArrays) {
  DevicePool pool(GetParam());
  Arrays in(5, std::vector<float>(4099));
  unsigned state = 1;
  for (auto& one : in) {
    for (float& x : one) {
      state = state * 1664525u + 1013904223u;
      x = static_cast<float>(state) * 1e-3f;
    }
  }
  std::vector<float> wanted(4099), out(4099);
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    wanted[k] = in[0][k];
    for (std::size_t i = 1; i < in.size(); ++i) wanted[k] += in[i][k];
  }
  pool.reduce(const_views(in), out);
  EXPECT_EQ(out, wanted);
}

TEST_P(Pools, HaveCommunicators) {
  DevicePool pool(GetParam());
  pool.map([](PoolWorker& worker) {
    Communicator& comm = worker.communicator();
    EXPECT_EQ(comm.rank(), worker.index());
    int sum = worker.index() + 1;
    comm.all_reduce(scalar(sum));
    EXPECT_EQ(sum, comm.size() * (comm.size() + 1) / 2);
  });
}

// An impossible array is refused, and not read.
TEST_P(Pools, RefuseArraysThatCannotBe) {
  const int n = GetParam();
  DevicePool pool(n);
  Arrays all = arrays(n, 10);
  std::vector<float> whole(static_cast<std::size_t>(n) * 10);
  const std::vector<int> from(all.size(), 0);
  const auto refused = [](const std::function<void()>& call, const char* why) {
    try {
      call();
      ADD_FAILURE() << "taken: " << why;
    } catch (const InvalidArgument& refusal) {
      EXPECT_NE(std::string(refusal.what()).find(why), std::string::npos) << refusal.what();
    }
  };
  const auto with = [&](ArrayView odd) {
    auto list = views(all);
    list.back() = odd;
    return list;
  };
  const auto given = [](const std::vector<ArrayView>& list) {
    return std::vector<ConstArrayView>(list.begin(), list.end());
  };
  const auto refused_everywhere = [&](ArrayView odd, ArrayView odd_whole, const char* why) {
    const auto odds = with(odd);
    refused([&] { pool.all_reduce(odds); }, why);
    refused([&] { pool.broadcast(odd, views(all)); }, why);
    refused([&] { pool.broadcast(all[0], odds); }, why);
    refused([&] { pool.distribute(std::vector<ConstArrayView>{odd}, from, views(all)); }, why);
    refused([&] { pool.scatter(odd_whole, views(all)); }, why);
    refused([&] { pool.gather(given(odds), whole); }, why);
    refused([&] { pool.gather(const_views(all), odd_whole); }, why);
    refused([&] { pool.reduce(given(odds), all[0]); }, why);
    refused([&] { pool.reduce(const_views(all), odd); }, why);
    refused([&] { pool.exchange_halo(odds, {1, 10, 1}, {}, 2); }, why);
  };
  constexpr auto kFloat = DType::kFloat32;
  constexpr std::size_t kHuge = std::size_t{1} << 62;
  refused_everywhere({nullptr, 10, kFloat}, {nullptr, whole.size(), kFloat}, "at a null address");
  refused_everywhere(
      {all[0].data(), kHuge, kFloat}, {whole.data(), kHuge, kFloat}, "more than any memory holds");
  const auto none = static_cast<DType>(77);
  refused_everywhere(
      {all[0].data(), 10, none}, {whole.data(), whole.size(), none}, "none of hocket::DType");
  const std::vector<std::size_t> seams(all.size() - 1, 0);
  refused([&] { pool.exchange_halo(views(all), {(std::size_t{1} << 63) + 1, 10, 1}, seams, 2); },
          "more elements than can be counted");
  refused([&] { pool.map(nullptr); }, "no function");
}

// The first error comes through, the others' waits are ended, and the pool goes on.
TEST_P(Pools, FailAndGoOn) {
  const int n = GetParam();
  DevicePool pool(n);
  std::atomic<int> aborted{0};
  for (int round = 0; round < 3; ++round) {
    const int guilty = round % n;
    try {
      pool.map([&](PoolWorker& worker) {
        if (worker.index() == guilty) throw std::out_of_range("worker's own words");
        try {
          worker.communicator().barrier();
        } catch (const Aborted&) {
          ++aborted;
          throw;
        }
      });
      FAIL() << "nothing was thrown";
    } catch (const std::out_of_range& error) {
      EXPECT_STREQ(error.what(), "worker's own words");
    }
    int sum = 0;
    pool.map([&](PoolWorker& worker) {
      int mine = 1;
      worker.communicator().all_reduce(scalar(mine));
      if (worker.index() == 0) sum = mine;
    });
    EXPECT_EQ(sum, n);
  }
  EXPECT_EQ(aborted, 3 * (n - 1));
}

TEST_P(Pools, SwapHalos) {
  const int n = GetParam();
  const auto size = static_cast<std::size_t>(n);
  DevicePool pool(n);
  const HaloShape shape{.outer = 2, .rows = 4 * size, .inner = 3};
  const std::size_t count = shape.outer * shape.rows * shape.inner;
  const Arrays in = arrays(n, count);
  Arrays inout = in;
  std::vector<std::size_t> seams;
  for (std::size_t i = 1; i < size; ++i) seams.push_back(4 * i);
  pool.exchange_halo(views(inout), shape, seams, 3);
  for (std::size_t i = 0; i < size; ++i) {
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t row = k / shape.inner % shape.rows;
      std::size_t from = i;
      if (i > 0 && row >= 4 * i && row < 4 * i + 3) from = i - 1;
      if (i + 1 < size && row >= 4 * (i + 1) && row < 4 * (i + 1) + 3) from = i + 1;
      ASSERT_EQ(inout[i][k], in[from][k]) << "worker " << i << ", element " << k;
    }
  }
}

TEST_P(Pools, BlendHalos) {
  const int n = GetParam();
  const auto size = static_cast<std::size_t>(n);
  DevicePool pool(n);
  std::vector<std::vector<std::complex<double>>> all(size);
  for (std::size_t i = 0; i < size; ++i) {
    all[i].assign(4 * size, {static_cast<double>(i), -static_cast<double>(i)});
  }
  std::vector<std::size_t> seams;
  for (std::size_t i = 1; i < size; ++i) seams.push_back(4 * i);
  const std::vector<ArrayView> inout(all.begin(), all.end());
  pool.exchange_halo(inout, {.rows = 4 * size}, seams, 3, {.mode = HaloOptions::Mode::kBlend});
  for (std::size_t i = 1; i < size; ++i) {
    for (std::size_t row = 0; row < 3; ++row) {
      const double wanted = static_cast<double>(i - 1) + (static_cast<double>(row) + 1) / 4;
      for (const std::size_t side : {i - 1, i}) {
        EXPECT_DOUBLE_EQ(all[side][4 * i + row].real(), wanted);
        EXPECT_DOUBLE_EQ(all[side][4 * i + row].imag(), -wanted);
      }
    }
    EXPECT_EQ(all[i][4 * i + 3].real(), static_cast<double>(i));
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, Pools, testing::Values(1, 2, 3, 4, 7));

// --- Composed with processes --------------------------------------------------------------------

TEST(PoolsAcross, ReduceWithOtherPools) {
  constexpr std::size_t kCount = 5001;
  // Processes bring pools of different sizes; ranks that are threads stand for them.
  run_threads(3, [](Communicator& comm) {
    const int mine = comm.rank() + 1;
    DevicePool pool(mine);
    const Arrays all = arrays(6, kCount);
    const auto first = static_cast<std::size_t>(comm.rank() * (comm.rank() + 1) / 2);
    const auto n = static_cast<std::size_t>(mine);
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
    const Arrays in(begin, begin + mine);
    Arrays inout = in;
    pool.all_reduce(views(inout), {.across = &comm});
    for (const auto& one : inout) EXPECT_EQ(one, sum_of(all, 0, 6));

    inout = in;
    pool.all_reduce(views(inout), {.op = ReduceOp::kAvg, .across = &comm});
    const auto sum = sum_of(all, 0, 6);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < kCount; ++k) ASSERT_EQ(inout[i][k], sum[k] / 6.0f);
    }
    std::vector<float> out(kCount);
    pool.reduce(const_views(in), out, {.op = ReduceOp::kMin, .across = &comm});
    EXPECT_EQ(out, all.front());
  });
}

TEST(PoolsAcross, ARefusalIsEverybodys) {
  std::atomic<int> refused{0};
  run_threads(2, [&](Communicator& comm) {
    DevicePool pool(2);
    Arrays inout = arrays(comm.rank() == 0 ? 2 : 1, 10);
    try {
      pool.all_reduce(views(inout), {.across = &comm});
    } catch (const InvalidArgument&) {
      ++refused;
    }
    comm.barrier();
  });
  EXPECT_EQ(refused, 2);
}

// Streams, which workers of the host do not have.
TEST(PoolsAcross, ARefusalOfStreamsIsEverybodys) {
  std::atomic<int> refused{0};
  run_threads(2, [&](Communicator& comm) {
    DevicePool pool(2);
    Arrays inout = arrays(2, 10);
    std::vector<StreamRef> streams(comm.rank() == 0 ? 1 : 0);
    const auto count = [&](const auto& call) {
      try {
        call();
      } catch (const InvalidArgument&) {
        ++refused;
      }
    };
    count([&] { pool.all_reduce(views(inout), {.across = &comm, .streams = streams}); });
    count(
        [&] { pool.reduce(const_views(inout), inout[0], {.across = &comm, .streams = streams}); });
    const std::vector<std::size_t> seam{4};
    count([&] {
      pool.exchange_halo(
          views(inout), {.rows = 10}, seam, 2, {.across = &comm, .streams = streams});
    });
    comm.barrier();
  });
  EXPECT_EQ(refused, 6);
}

TEST(PoolsAcross, ExchangeHalos) {
  // Two processes of two workers: four strips of one picture, whose rows all have.
  constexpr std::size_t kRows = 16;
  const Arrays all = arrays(4, kRows * 2);
  run_threads(2, [&](Communicator& comm) {
    DevicePool pool(2);
    const std::size_t first = 2 * static_cast<std::size_t>(comm.rank());
    Arrays inout{all[first], all[first + 1]};
    const std::vector<std::size_t> seams{4 * (first + 1)};
    pool.exchange_halo(views(inout),
                       {.rows = kRows, .inner = 2},
                       seams,
                       2,
                       {.across = &comm, .previous_seam = 4 * first, .next_seam = 4 * (first + 2)});
    for (std::size_t i = first; i < first + 2; ++i) {
      for (std::size_t k = 0; k < kRows * 2; ++k) {
        const std::size_t row = k / 2;
        std::size_t from = i;
        if (i > 0 && row >= 4 * i && row < 4 * i + 2) from = i - 1;
        if (i < 3 && row >= 4 * (i + 1) && row < 4 * (i + 1) + 2) from = i + 1;
        ASSERT_EQ(inout[i - first][k], all[from][k]) << "worker " << i << ", element " << k;
      }
    }
  });
}

// --- Arguments and life -------------------------------------------------------------------------

template <typename F>
std::string refusal(F&& f) {
  try {
    f();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

TEST(Pool, RefusesBadArguments) {
  EXPECT_EQ(refusal([] { DevicePool pool(0); }), "workers is 0, expected at least 1");
  // Before a thread is there: the system would not start so many.
  for (const int workers : {1'000'000, std::numeric_limits<int>::max()}) {
    const std::string many = refusal([&] { DevicePool pool(workers); });
    const std::string threads = refusal([&] { run_threads(workers, [](Communicator&) {}); });
    const std::string told =
        "there are " + std::to_string(workers) + " ranks on one host, expected";
    EXPECT_TRUE(many.starts_with(told)) << many;
    EXPECT_TRUE(threads.starts_with(told)) << threads;
  }
  DevicePool pool(2);
  Arrays two = arrays(2, 5);
  Arrays three = arrays(3, 5);
  Arrays odd{std::vector<float>(5), std::vector<float>(4)};
  EXPECT_EQ(refusal([&] { pool.all_reduce(views(three)); }),
            "in has 3 arrays for 2 workers; one for each is expected");
  EXPECT_EQ(refusal([&] { pool.all_reduce(views(odd)); }),
            "in[1] is float32[4], expected float32[5] as the first");
  EXPECT_EQ(refusal([&] { pool.all_reduce(views(two), {.op = ReduceOp::kBitAnd}); }),
            "op band has no meaning on float32");
  EXPECT_EQ(refusal([&] { pool.all_reduce(views(two), {.group = -1}); }),
            "group is -1, expected at least 1 worker");
  EXPECT_EQ(refusal([&] { pool.scatter(two[0], views(two)); }),
            "in has 5 elements, and the arrays of out 10");
  EXPECT_EQ(refusal([&] { pool.exchange_halo(views(two), {.rows = 5}, {}, 1); }),
            "seams has 0 entries, and 2 workers have 1 seams");
  const std::vector<std::size_t> seam{4};
  EXPECT_EQ(refusal([&] { pool.exchange_halo(views(two), {.rows = 5}, seam, 2); }),
            "a seam is 4 and overlap 2, and the arrays have 5 rows");
  EXPECT_EQ(refusal([&] { static_cast<void>(pool.stream(0)); }),
            "workers of the host have no streams");
  const std::vector<int> workers{1, 1};
  EXPECT_EQ(refusal([&] { pool.map(workers, [](PoolWorker&) {}); }), "worker 1 is given twice");
}

TEST(Pool, RefusesArraysThatShareMemory) {
  DevicePool pool(2);
  std::vector<float> a(20), b(20), whole(40);
  const std::vector<ArrayView> twice{a, a}, two{a, b};
  const std::vector<ConstArrayView> in{a, b};
  const ArrayView shifted = ArrayView(whole).slice(1, 20), first = ArrayView(whole).slice(0, 20),
                  second = ArrayView(whole).slice(20, 20);
  EXPECT_NE(refusal([&] { pool.all_reduce(twice); }), "");
  EXPECT_NE(refusal([&] { pool.all_reduce(std::vector<ArrayView>{first, shifted}); }), "");
  EXPECT_NE(refusal([&] { pool.all_reduce(in, std::vector<ArrayView>{b, a}); }), "");
  EXPECT_NE(refusal([&] { pool.reduce(std::vector<ConstArrayView>{first, b}, shifted); }), "");
  // A swap in place: each would read what the other one writes.
  EXPECT_EQ(refusal([&] { pool.distribute(in, std::vector<int>{1, 0}, two); }),
            "out[0] is in[0], which another worker reads");
  EXPECT_NE(refusal([&] { pool.scatter(whole, std::vector<ArrayView>{second, first}); }), "");
  EXPECT_NE(refusal([&] { pool.gather(std::vector<ConstArrayView>{second, first}, whole); }), "");
  EXPECT_NE(
      refusal([&] { pool.exchange_halo(twice, {.rows = 20}, std::vector<std::size_t>{3}, 2); }),
      "");
  // In place is fine.
  EXPECT_EQ(refusal([&] {
              pool.distribute(in, std::vector<int>{0, 1}, two);
              pool.broadcast(a, two);
              pool.scatter(whole, std::vector<ArrayView>{first, second});
              pool.gather(std::vector<ConstArrayView>{first, second}, whole);
              pool.all_reduce(in, two);
              pool.reduce(in, a);
            }),
            "");
}

TEST(Pool, IsNotCalledByItsWorkers) {
  DevicePool pool(2);
  std::atomic<int> refused{0};
  pool.map([&](PoolWorker&) {
    if (!refusal([&] { pool.map([](PoolWorker&) {}); }).empty()) ++refused;
  });
  EXPECT_EQ(refused, 2);
}

TEST(Pool, CloseAgainAndAgain) {
  DevicePool pool(2);
  EXPECT_FALSE(pool.is_closed());
  pool.close();
  pool.close();
  EXPECT_TRUE(pool.is_closed());
  EXPECT_EQ(refusal([&] { pool.map([](PoolWorker&) {}); }), "the pool is closed");
}

TEST(Pool, IsRefusedAfterAFork) {
  DevicePool pool(2);
  const pid_t child = fork();
  if (child == 0) {
    int code = 1;
    {
      DevicePool mine = std::move(pool);
      if (refusal([&] { mine.map([](PoolWorker&) {}); }).find("forked") != std::string::npos) {
        code = 0;
      }
    }
    _exit(code);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  int calls = 0;
  pool.map(std::vector<int>{1}, [&](PoolWorker&) { ++calls; });
  EXPECT_EQ(calls, 1);
}

// --- Streaming ----------------------------------------------------------------------------------

TEST(StreamChunks, LoadsAheadAndInOrder) {
  for (const std::size_t buffers : {1u, 2u, 3u}) {
    for (const std::size_t count : {0u, 1u, 7u, 8u, 1000u}) {
      std::vector<std::vector<std::size_t>> buffer(buffers);
      std::vector<std::size_t> seen;
      std::atomic<std::size_t> loads{0}, uses{0};
      stream_chunks(
          count,
          {.chunk = 8, .buffers = buffers},
          [&](std::size_t b, std::size_t first, std::size_t last) {
            EXPECT_LT(loads++ - uses, buffers);
            buffer[b].resize(last - first);
            std::iota(buffer[b].begin(), buffer[b].end(), first);
          },
          [&](std::size_t b, std::size_t, std::size_t) {
            seen.insert(seen.end(), buffer[b].begin(), buffer[b].end());
            ++uses;
          });
      std::vector<std::size_t> wanted(count);
      std::iota(wanted.begin(), wanted.end(), 0);
      EXPECT_EQ(seen, wanted);
    }
  }
}

TEST(StreamChunks, ErrorsEndBoth) {
  const auto nothing = [](std::size_t, std::size_t, std::size_t) {};
  const auto failing = [](std::size_t, std::size_t first, std::size_t) {
    if (first == 6) throw std::out_of_range("six");
  };
  EXPECT_THROW(stream_chunks(100, {.chunk = 3}, failing, nothing), std::out_of_range);
  EXPECT_THROW(stream_chunks(100, {.chunk = 3}, nothing, failing), std::out_of_range);
  EXPECT_THROW(stream_chunks(100, {.chunk = 0}, nothing, nothing), InvalidArgument);
}

}  // namespace
}  // namespace hocket
