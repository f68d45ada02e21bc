// The CUDA layer on the fake driver: loading, the order of streams, shared memory.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <barrier>
#include <csignal>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>

#include "foundation/base/poll.h"
#include "foundation/cuda/exchange.h"
#include "foundation/cuda/idle.h"
#include "foundation/cuda/memory.h"
#include "foundation/cuda/memory_pattern.h"
#include "foundation/cuda/stream.h"
#include "foundation/cuda/text_kernel.h"
#include "foundation/cuda/vmm.h"
#include "hocket/error.h"

namespace hocket::cuda {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

std::shared_ptr<const DeviceContext> device(int ordinal = 0) {
  const FoundDriver found = Driver::find();
  if (!found.driver) throw DeviceError(found.why_not);
  return std::make_shared<DeviceContext>(found.driver, ordinal);
}

base::Deadline soon() { return base::Deadline::in(seconds(20)); }

TEST(CudaDriver, IsFoundAndSaysWhatItHas) {
  const FoundDriver found = Driver::find();
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

TEST(CudaMemory, IsTakenAndFreedBesideACapture) {
  const auto gpu = device();
  const Driver& driver = gpu->driver();
  const DeviceGuard guard(*gpu);
  const OwnedStream stream(gpu);
  for (const bool own : {true, false}) {
    const auto use = [&] {
      const DeviceBuffer memory(gpu, 1000);
      const HostBuffer pinned(gpu, 64);
    };
    driver.stream_begin_capture(stream.get(), CaptureMode::kGlobal);
    own ? use() : std::thread(use).join();
    Graph graph = nullptr;
    EXPECT_EQ(driver.stream_end_capture(stream.get(), &graph), Result::kSuccess) << "own: " << own;
    driver.graph_destroy(graph);
  }
}

// The fake driver's own functions; see tests/fake_cuda/faults.h.
long calls(const char* name) {
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<long (*)(const char*)>(::dlsym(library, "fake_cuda_calls"))(name);
}
void fail(const char* name, long count, Result result) {
  using Fail = int(const char*, long, long, int);
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW);
  reinterpret_cast<Fail*>(::dlsym(library, "fake_cuda_fail"))(
      name, count == 0 ? 0 : 1, count, static_cast<int>(result));
}

TEST(CudaMemory, NothingIsLeftWhereItsMakingFails) {
  const auto gpu = device();
  const DeviceGuard guard(*gpu);
  const long freed = calls("cuMemFreeHost");
  fail("cuMemHostGetDevicePointer", 1, Result::kInvalidValue);
  EXPECT_THROW(HostBuffer(gpu, 64), DeviceError);
  EXPECT_EQ(calls("cuMemFreeHost"), freed + 1);
  const long unloaded = calls("cuModuleUnload");
  fail("cuModuleGetFunction", 1, Result::kInvalidValue);
  EXPECT_THROW(TextKernel(gpu, "\n.entry hocket_box_4(", "hocket_box_4"), DeviceError);
  EXPECT_EQ(calls("cuModuleUnload"), unloaded + 1);
}

// The driver's free waits for the copy, and has no deadline. Another thread waits for that.
TEST(CudaMemory, ACopyThatDoesNotEndHoldsNobodyUp) {
  const auto gpu = device();
  const DeviceBuffer memory(gpu, kPatternBytes);
  const long waited = calls("cuCtxSynchronize");
  fail("cuStreamQuery", 1'000'000, Result::kNotReady);
  EXPECT_EQ(write_pattern(gpu, memory.address(), 3, base::Deadline::in(milliseconds(5))),
            "a copy did not end in time");
  fail("cuStreamQuery", 0, Result::kSuccess);
  base::poll_until([&] { return calls("cuCtxSynchronize") != waited; }, soon(), milliseconds(1));
  EXPECT_EQ(calls("cuCtxSynchronize"), waited + 1);
}

TEST(CudaMemory, IsReleasedByAThreadThatTakesNoSignals) {
  sigset_t blocked;
  sigemptyset(&blocked);
  std::shared_ptr<void> memory(&blocked, [](void* at) {
    pthread_sigmask(SIG_SETMASK, nullptr, static_cast<sigset_t*>(at));
  });
  EXPECT_TRUE(release_when_idle(device(), std::move(memory), soon()));
  EXPECT_EQ(sigismember(&blocked, SIGINT), 1);
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

// The same holds for the real driver, whose streams are distinguished by their numbers alone.
TEST(CudaStream, HandlesAreGivenAnewAndNumbersAreNot) {
  const auto gpu = device();
  const Driver& driver = gpu->driver();
  const DeviceGuard guard(*gpu);
  auto first = std::make_unique<OwnedStream>(gpu);
  const Stream handle = first->get();
  const auto number = number_of(driver, handle);
  ASSERT_TRUE(number);
  EXPECT_EQ(number_of(driver, handle), number);
  first.reset();
  const OwnedStream second(gpu);
  EXPECT_EQ(second.get(), handle);
  EXPECT_NE(number_of(driver, second.get()), number);
  Event event = nullptr;
  Event other = nullptr;
  driver.event_create(&event, 0);
  driver.event_destroy(event);
  driver.event_create(&other, 0);
  EXPECT_EQ(event, other);
  driver.event_destroy(other);
  EXPECT_EQ(driver.event_record(other, second.get()), Result::kInvalidHandle);
}

// The legacy default stream waits for all ordinary streams, and they for it.
TEST(CudaStream, TheDefaultStreamHasItsRules) {
  const auto gpu = device(3);
  const Driver& driver = gpu->driver();
  const DeviceGuard guard(*gpu);
  const OwnedStream apart(gpu);
  Stream ordinary = nullptr;
  driver.stream_create(&ordinary, 0);
  HostBuffer words(gpu, 64);
  auto* word = reinterpret_cast<std::uint32_t*>(words.data());
  std::memset(word, 0, 64);
  const DevicePtr at = words.device_address();
  driver.stream_wait_value32(ordinary, at, 1, kStreamWaitGreaterOrEqual);
  driver.stream_write_value32(ordinary, at + 4, 5, 0);
  driver.memcpy_async(at + 8, at + 4, 4, nullptr);
  driver.memcpy_async(at + 12, at + 8, 4, ordinary);
  driver.stream_write_value32(apart.get(), at + 16, 5, 0);
  EXPECT_TRUE(drain(driver, apart.get(), soon()));
  EXPECT_FALSE(drained(driver, nullptr));
  EXPECT_EQ(word[2], 0U);
  std::atomic_ref(word[0]).store(1);
  EXPECT_TRUE(drain(driver, ordinary, soon()));
  EXPECT_EQ(word[3], 5U);
  driver.stream_destroy(ordinary);
}

// Whatever order is allowed happens now and then.
TEST(CudaStream, StreamsOvertakeEachOther) {
  const auto gpu = device();
  const Driver& driver = gpu->driver();
  const DeviceGuard guard(*gpu);
  const OwnedStream one(gpu);
  const OwnedStream two(gpu);
  HostBuffer words(gpu, 64);
  auto* word = reinterpret_cast<std::uint32_t*>(words.data());
  int in_turn = 0, overtaken = 0;
  for (int i = 0; i < 20000 && (in_turn == 0 || overtaken == 0); ++i) {
    word[0] = word[1] = 0;
    driver.stream_write_value32(one.get(), words.device_address(), 1, 0);
    driver.memcpy_async(words.device_address() + 4, words.device_address(), 4, two.get());
    drain(driver, one.get(), soon());
    drain(driver, two.get(), soon());
    ++(word[1] == 1 ? in_turn : overtaken);
  }
  EXPECT_GT(in_turn, 0);
  EXPECT_GT(overtaken, 0);
}

TEST(CudaStream, AGraphIsPlayedAgain) {
  const auto gpu = device();
  const Driver& driver = gpu->driver();
  const DeviceGuard guard(*gpu);
  const OwnedStream stream(gpu);
  HostBuffer words(gpu, 64);
  auto* word = reinterpret_cast<std::uint32_t*>(words.data());
  std::memset(word, 0, 64);
  Graph graph = nullptr;
  GraphExec replay = nullptr;
  driver.stream_begin_capture(stream.get(), CaptureMode::kThreadLocal);
  driver.memcpy_async(words.device_address() + 4, words.device_address(), 4, stream.get());
  ASSERT_EQ(driver.stream_end_capture(stream.get(), &graph), Result::kSuccess);
  ASSERT_EQ(driver.graph_instantiate(&replay, graph, 0), Result::kSuccess);
  for (std::uint32_t round = 0; round < 3; ++round) {
    word[0] = 10 + round;
    EXPECT_EQ(word[1], round == 0 ? 0 : 9 + round);
    driver.graph_launch(replay, stream.get());
    ASSERT_TRUE(drain(driver, stream.get(), soon()));
    EXPECT_EQ(word[1], 10 + round);
  }
  driver.graph_exec_destroy(replay);
  driver.graph_destroy(graph);
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
  explicit Gatherer(int size) : all_(static_cast<std::size_t>(size)), barrier_(size) {}

  std::vector<std::byte> operator()(int rank, std::span<const std::byte> own) {
    {
      const std::lock_guard lock(mutex_);
      all_[static_cast<std::size_t>(rank)].assign(own.begin(), own.end());
    }
    barrier_.arrive_and_wait();
    std::vector<std::byte> joined;
    for (const auto& one : all_) joined.insert(joined.end(), one.begin(), one.end());
    barrier_.arrive_and_wait();
    return joined;
  }

 private:
  std::mutex mutex_;
  std::vector<std::vector<std::byte>> all_;
  std::barrier<> barrier_;
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

TEST(CudaExchange, ARankThatCannotSendEndsItForAll) {
  constexpr int kRanks = 3;
  Gatherer gatherer(kRanks);
  std::vector<std::string> errors(kRanks);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        exchange_descriptors(
            rank,
            kRanks,
            rank == 1 ? os::Fd() : Mapping::create(device(), 1).share(),
            1,
            [&](std::span<const std::byte> bytes) { return gatherer(rank, bytes); },
            soon());
      } catch (const DeviceError& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      } catch (const Error& error) {
        errors[static_cast<std::size_t>(rank)] = std::string("not of a device: ") + error.what();
      }
    });
  }
  threads.clear();
  for (const std::string& error : errors) EXPECT_TRUE(error.starts_with("rank 1: ")) << error;
}

}  // namespace
}  // namespace hocket::cuda
