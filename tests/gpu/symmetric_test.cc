// Symmetric memory of GPUs: peers' views, collectives without staging, refused arguments.
#include <gtest/gtest.h>

#include "device_arrays.h"

namespace hocket::gpu {
namespace {

class Symmetric : public testing::Test {
 protected:
  void SetUp() override {
    if (machine().gpus < 2) GTEST_SKIP() << "two GPUs are wanted: " << machine().why_not;
  }
  static int ranks() { return std::min(4, machine().gpus); }
};

using Ints = std::vector<std::int32_t>;

void write(GpuRank& self, ArrayView to, const Ints& values) {
  const auto& gpu = self.device->driver();
  cuda::copy(gpu, to.data(), values.data(), values.size() * 4, self.stream.get());
  cuda::check(gpu, gpu.stream_synchronize(self.stream.get()), "wait");
}
Ints read(GpuRank& self, ConstArrayView from) {
  Ints values(from.count());
  const auto& gpu = self.device->driver();
  cuda::copy(gpu, values.data(), from.data(), values.size() * 4, self.stream.get());
  cuda::check(gpu, gpu.stream_synchronize(self.stream.get()), "wait");
  return values;
}
Ints values(int rank, std::size_t count) {
  Ints made(count);
  for (std::size_t i = 0; i < count; ++i) {
    made[i] = static_cast<std::int32_t>(i % 1000) + 1000 * rank;
  }
  return made;
}
void expect(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

TEST_F(Symmetric, PeersAreReadAndWritten) {
  const std::string failure = run(ranks(), {}, [&](GpuRank& self) {
    auto array = self.comm.symmetric().empty<std::int32_t>(5000, {.memory = MemoryKind::kCuda});
    expect(read(self, array) == Ints(5000), "it is not zeroed");
    write(self, array, values(self.comm.rank(), 5000));
    self.comm.barrier();
    const int next = (self.comm.rank() + 1) % self.comm.size();
    expect(read(self, array.peer(next)) == values(next, 5000), "a peer's part is another's");
    const ArrayView part = array.local().slice(100, 50);
    expect(self.comm.symmetric().peer(part, next).data() ==
               static_cast<std::int32_t*>(array.peer(next).data()) + 100,
           "a slice's peer is elsewhere");
    self.comm.barrier();
    write(self, array.peer(next), values(90 + self.comm.rank(), 5000));
    self.comm.barrier();
    const int before = (self.comm.rank() + self.comm.size() - 1) % self.comm.size();
    expect(read(self, array) == values(90 + before, 5000), "what a peer wrote is not here");
    self.comm.barrier();
  });
  EXPECT_EQ(failure, "");
}

TEST_F(Symmetric, CollectivesOfAllSizesAndParts) {
  for (const std::size_t share : {3u, 1000u, 70'000u, 400'000u, 3'000'000u}) {
    const std::string failure = run(ranks(), {"peer"}, [&](GpuRank& self) {
      const auto n = static_cast<std::size_t>(self.comm.size());
      const int rank = self.comm.rank();
      const StreamRef stream(self.stream.get());
      auto symmetric = self.comm.symmetric();
      auto in = symmetric.empty<std::int32_t>(n * share + 7, {.memory = MemoryKind::kCuda});
      auto out = symmetric.empty<std::int32_t>(n * share + 7, {.memory = MemoryKind::kCuda});
      const ArrayView x = in.local().slice(4, n * share);
      const ArrayView y = out.local().slice(4, n * share);
      const ArrayView own = in.local().slice(4, share);
      write(self, x, values(rank, n * share));

      for (int turn = 0; turn < 3; ++turn) {
        self.comm.all_gather(own, y, {.stream = stream});
        Ints expected;
        for (std::size_t q = 0; q < n; ++q) {
          const Ints part = values(static_cast<int>(q), share);
          expected.insert(expected.end(), part.begin(), part.end());
        }
        expect(read(self, y) == expected, "all_gather");
        self.comm.all_to_all(x, y, {.stream = stream});
        for (std::size_t q = 0; q < n; ++q) {
          const Ints all = values(static_cast<int>(q), n * share);
          std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(rank) * static_cast<int>(share),
                      share,
                      expected.begin() + static_cast<std::ptrdiff_t>(q * share));
        }
        expect(read(self, y) == expected, "all_to_all");
        self.comm.all_reduce(x, y, {.stream = stream});
        for (std::size_t i = 0; i < n * share; ++i) {
          expected[i] = static_cast<std::int32_t>(n * (i % 1000) + 1000 * (n * (n - 1) / 2));
        }
        expect(read(self, y) == expected, "all_reduce");
        write(self, y, values(rank, n * share));
        self.comm.broadcast(y, {.root = 1, .stream = stream});
        expect(read(self, y) == values(1, n * share), "broadcast");
      }
      self.comm.barrier();  // the root is through before the others are, and would leave
    });
    EXPECT_EQ(failure, "") << share;
  }
}

TEST_F(Symmetric, WhatIsNotSymmetricOnAllRanksIsAMismatch) {
  const std::string failure = run(2, {}, [&](GpuRank& self) {
    auto array = self.comm.symmetric().empty<float>(1000, {.memory = MemoryKind::kCuda});
    cuda::DeviceBuffer plain(self.device, 4000);
    const ArrayView other = cuda_array(static_cast<float*>(plain.data()), 1000);
    const ArrayView mine = self.comm.rank() == 0 ? array.local() : other;
    try {
      self.comm.all_reduce_async(mine, {.stream = self.stream.get()}).synchronize();
      self.comm.barrier();
    } catch (const Mismatch&) {
      return;
    }
    throw std::runtime_error("nobody noticed");
  });
  EXPECT_EQ(failure, "");
}

TEST_F(Symmetric, FreedItIsOrdinary) {
  const std::string failure = run(2, {}, [&](GpuRank& self) {
    auto symmetric = self.comm.symmetric();
    auto array = symmetric.empty<float>(1000, {.memory = MemoryKind::kCuda});
    symmetric.free(array);
    try {
      symmetric.peer(array, 0);
    } catch (const InvalidArgument& error) {
      expect(std::string(error.what()).find("symmetric") != std::string::npos, error.what());
      self.comm.all_reduce(array.local(), {.stream = self.stream.get()});
      self.comm.barrier();
      return;
    }
    throw std::runtime_error("it still has peers");
  });
  EXPECT_EQ(failure, "");
}

}  // namespace
}  // namespace hocket::gpu
