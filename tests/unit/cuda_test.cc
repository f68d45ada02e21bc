// The CUDA layer on the fake driver: what is loaded, what is ordered, what is shared.
#include <gtest/gtest.h>

#include <cstring>
#include <mutex>
#include <thread>

#include "cuda/exchange.h"
#include "cuda/memory.h"
#include "cuda/proof.h"
#include "cuda/stream.h"
#include "cuda/vmm.h"
#include "hocket/error.h"

namespace hocket::cuda {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::shared_ptr<const DeviceContext> device(int ordinal = 0) {
  const Found found = Driver::find();
  if (!found.driver) throw DeviceError(found.why_not);
  return std::make_shared<DeviceContext>(found.driver, ordinal);
}

base::Deadline soon() { return base::Deadline::in(seconds(20)); }

TEST(CudaDriver, IsFoundAndSaysWhatItHas) {
  const Found found = Driver::find();
  ASSERT_TRUE(found.driver) << found.why_not;
  EXPECT_EQ(found.driver->version(), 12040);
  EXPECT_EQ(found.driver->devices(), 4);
  EXPECT_NE(found.driver->path().find("fake_cuda"), std::string::npos);
}

TEST(CudaDriver, ADeviceThatIsNotThereIsNamed) {
  try {
    device(7);
    FAIL() << "no error";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("GPU 7"), std::string::npos) << error.what();
    EXPECT_EQ(error.code(), ErrorCode::kDevice);
  }
}

TEST(CudaContext, AGuardPutsBackWhatWasCurrent) {
  const auto first = device(0);
  const auto second = device(1);
  const Driver& driver = first->driver();
  Context current = nullptr;
  {
    const DeviceGuard outer(*first);
    {
      const DeviceGuard inner(*second);
      driver.ctx_get_current(&current);
      EXPECT_EQ(current, second->handle());
    }
    driver.ctx_get_current(&current);
    EXPECT_EQ(current, first->handle());
  }
  driver.ctx_get_current(&current);
  EXPECT_EQ(current, nullptr);
}

TEST(CudaMemory, AddressesAreToldApart) {
  const auto second = device(1);
  const DeviceBuffer buffer(second, 1000);
  const HostBuffer pinned(second, 64);
  const int plain = 0;
  const Driver& driver = second->driver();
  EXPECT_EQ(whereabouts(driver, buffer.data()).memory, MemoryKind::kCuda);
  EXPECT_EQ(whereabouts(driver, static_cast<std::byte*>(buffer.data()) + 999).device, 1);
  EXPECT_EQ(whereabouts(driver, pinned.data()).memory, MemoryKind::kHost);
  EXPECT_EQ(whereabouts(driver, &plain).memory, MemoryKind::kHost);
}

TEST(CudaMemory, TooMuchSaysHowMuch) {
  try {
    const DeviceBuffer buffer(device(), std::size_t{1} << 40);
    FAIL() << "no error";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("1099511627776 bytes on GPU 0"), std::string::npos)
        << error.what();
  }
}

TEST(CudaStream, EventsOrderStreams) {
  const auto gpu = device();
  const Driver& driver = gpu->driver();
  const DeviceGuard guard(*gpu);
  const OwnedStream one(gpu);
  const OwnedStream two(gpu);
  OwnedEvent event(gpu);
  HostBuffer words(gpu, 64);
  auto* gate = reinterpret_cast<std::uint32_t*>(words.data());
  const DevicePtr at = words.device_address();
  // One waits for the gate; two waits for one.
  driver.stream_wait_value32(one.get(), at, 1, kStreamWaitGreaterOrEqual);
  driver.stream_write_value32(one.get(), at + 4, 5, 0);
  event.record(one.get());
  event.hold(two.get());
  driver.memcpy_async(at + 8, at + 4, 4, two.get());
  EXPECT_FALSE(event.wait(base::Deadline::in(milliseconds(30))));
  EXPECT_FALSE(drained(driver, two.get()));
  std::atomic_ref(gate[0]).store(1);
  EXPECT_TRUE(drain(driver, two.get(), soon()));
  EXPECT_EQ(gate[2], 5U);
}

TEST(CudaMapping, AnImportIsTheSameMemory) {
  const auto first = device(0);
  const auto second = device(1);
  const Mapping owned = Mapping::create(first, 5000);
  EXPECT_EQ(owned.bytes() % (std::size_t{2} << 20), 0U);
  const Mapping other = Mapping::import(second, owned.share(), owned.bytes());
  EXPECT_NE(owned.address(), other.address());
  EXPECT_EQ(write_pattern(first, owned.address() + 4096, 3, soon()), "");
  EXPECT_EQ(read_pattern(second, other.address() + 4096, 3, soon()), "");
  EXPECT_NE(read_pattern(second, other.address() + 4096, 4, soon()), "");
  EXPECT_NE(read_pattern(second, other.address(), 3, soon()), "");
}

// A gather of as many ranks as there are threads.
class Gatherer {
 public:
  explicit Gatherer(int size) : all_(static_cast<std::size_t>(size)) {}

  std::vector<std::byte> operator()(int rank, std::span<const std::byte> own) {
    {
      const std::lock_guard lock(mutex_);
      all_[static_cast<std::size_t>(rank)].assign(own.begin(), own.end());
      ++arrived_;
    }
    while (arrived_ < static_cast<int>(all_.size())) std::this_thread::yield();
    std::vector<std::byte> joined;
    for (const auto& one : all_) joined.insert(joined.end(), one.begin(), one.end());
    return joined;
  }

 private:
  std::mutex mutex_;
  std::vector<std::vector<std::byte>> all_;
  std::atomic<int> arrived_{0};
};

TEST(CudaExchange, EveryRankGetsEveryOthersMemory) {
  constexpr int kRanks = 4;
  Gatherer gatherer(kRanks);
  std::vector<std::string> problems(kRanks);
  std::vector<std::jthread> threads;
  std::atomic<int> written{0};
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto gpu = device(rank % 2);
      const Mapping own = Mapping::create(gpu, 1);
      const auto handed = exchange_descriptors(
          rank,
          kRanks,
          own.share(),
          own.bytes(),
          [&](std::span<const std::byte> bytes) { return gatherer(rank, bytes); },
          soon());
      write_pattern(gpu, own.address(), static_cast<std::uint32_t>(rank), soon());
      ++written;
      while (written < kRanks) std::this_thread::yield();
      for (int peer = 0; peer < kRanks; ++peer) {
        const auto& from = handed[static_cast<std::size_t>(peer)];
        if (peer == rank) continue;
        const Mapping mapped = Mapping::import(gpu, from.fd, from.bytes);
        problems[static_cast<std::size_t>(rank)] +=
            read_pattern(gpu, mapped.address(), static_cast<std::uint32_t>(peer), soon());
      }
    });
  }
  threads.clear();
  for (const std::string& problem : problems) EXPECT_EQ(problem, "");
}

}  // namespace
}  // namespace hocket::cuda
