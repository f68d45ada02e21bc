// A driver that says no, in any of its functions and at any call: every rank hears of it, or has
// the right results. On the fake driver, which fails when it is asked to.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <barrier>
#include <functional>

#include "device_arrays.h"

namespace hocket::gpu {
namespace {

constexpr std::size_t kCount = 1000;

struct Fake {
  int (*fail)(const char* name, long first, long count, int result) = nullptr;
  long (*calls)(const char* name) = nullptr;
};
Fake fake() {
  void* library = ::dlopen("libcuda.so.1", RTLD_NOW);
  return {reinterpret_cast<decltype(Fake::fail)>(::dlsym(library, "fake_cuda_fail")),
          reinterpret_cast<decltype(Fake::calls)>(::dlsym(library, "fake_cuda_calls"))};
}

class Faults : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (machine().gpus < 2) GTEST_SKIP() << "two GPUs are wanted: " << machine().why_not;
    if (!machine().fake) GTEST_SKIP() << "real drivers do not fail when they are asked to";
  }
};
// Functions of a call's path, of messages', of symmetric memory's.
INSTANTIATE_TEST_SUITE_P(All,
                         Faults,
                         testing::Values("cuMemcpyAsync",
                                         "cuStreamWriteValue32",
                                         "cuStreamWaitValue32",
                                         "cuStreamWaitEvent",
                                         "cuStreamIsCapturing",
                                         "cuStreamCreate",
                                         "cuStreamSynchronize",
                                         "cuEventCreate",
                                         "cuEventRecord",
                                         "cuEventQuery",
                                         "cuMemHostAlloc",
                                         "cuMemHostGetDevicePointer",
                                         "cuMemsetD8Async",
                                         "cuMemGetAllocationGranularity",
                                         "cuMemCreate",
                                         "cuMemAddressReserve",
                                         "cuMemMap",
                                         "cuMemSetAccess",
                                         "cuMemExportToShareableHandle",
                                         "cuMemImportFromShareableHandle"),
                         [](const auto& tested) { return tested.param; });

// One rank's arrays, made before anything fails.
struct Rank {
  explicit Rank(GpuRank& self)
      : self_(self), x_(self.device, kCount * 4), y_(self.device, kCount * 4), other_(self.device) {
    const std::vector<std::int32_t> ones(kCount, self.comm.rank() + 1);
    const auto& gpu = self.device->driver();
    gpu.memcpy_htod_async(x_.address(), ones.data(), kCount * 4, self.stream.get());
    cuda::drain(gpu, self.stream.get(), base::Deadline::in(std::chrono::seconds(20)));
  }

  static ArrayView view(const cuda::DeviceBuffer& of) {
    return cuda_array(static_cast<std::int32_t*>(of.data()), kCount);
  }
  void call() {
    Communicator& comm = self_.comm;
    const int peer = 1 - comm.rank();
    const StreamRef stream(self_.stream.get());
    comm.all_reduce(view(x_), {.stream = stream});  // 3
    comm.all_reduce(view(x_), {.op = ReduceOp::kMax, .stream = StreamRef(other_.get())});
    comm.send_recv(view(x_), peer, view(y_), peer, {.stream = stream});
    auto shared = comm.symmetric().empty<std::int32_t>(kCount, {.memory = MemoryKind::kCuda});
    comm.all_reduce(ConstArrayView(view(y_)), shared.local(), {.stream = stream});  // 6
    comm.all_reduce_async(shared.local(), {.stream = stream}).synchronize();        // 12
    comm.broadcast(ConstArrayView(shared.local()), view(y_), {.root = 1, .stream = stream});
    comm.barrier();
    comm.close();
  }
  std::string check() {
    const auto& gpu = self_.device->driver();
    std::vector<std::int32_t> found(kCount);
    gpu.memcpy_dtoh_async(found.data(), y_.address(), kCount * 4, self_.stream.get());
    if (!cuda::drain(gpu, self_.stream.get(), base::Deadline::in(std::chrono::seconds(20)))) {
      return "a stream hangs";
    }
    return found == std::vector<std::int32_t>(kCount, 12) ? "" : "wrong, and nobody said so";
  }

 private:
  GpuRank& self_;
  cuda::DeviceBuffer x_, y_;
  cuda::OwnedStream other_;
};

// The error after the `nth` call failed, or an empty string. `was_reached`: such a call was made.
std::string fail_one(const Fake& driver, const std::string& name, long nth, bool& was_reached) {
  std::barrier together(2);
  std::array<std::string, 2> said;
  const long before = driver.calls(name.c_str());
  long after = 0;
  const std::string failure = run(2, {}, [&](GpuRank& self) {
    const auto at = static_cast<std::size_t>(self.comm.rank());
    self.comm.set_deadline(std::chrono::seconds(20));
    Rank rank(self);
    together.arrive_and_wait();
    if (at == 0) driver.fail(name.c_str(), nth, 1, 719);
    together.arrive_and_wait();
    try {
      rank.call();
    } catch (const DeadlineExceeded& error) {
      said[at] = std::string("it took a deadline: ") + error.what();
    } catch (const Error& error) {
      said[at] = "told";
    }
    together.arrive_and_wait();
    if (at == 0) after = driver.calls(name.c_str());
    if (at == 0) driver.fail(name.c_str(), 0, 0, 0);
    together.arrive_and_wait();
    const std::string found = rank.check();
    if (said[at] == "told") {
      said[at] = found == "a stream hangs" ? found : "";
    } else if (said[at].empty()) {
      said[at] = found;
    }
  });
  was_reached = after - before >= nth;
  if (!failure.empty()) return failure;
  return said[0].empty() ? said[1] : said[0];
}

TEST_P(Faults, EveryRankHearsOfItOrHasItsResults) {
  const Fake driver = fake();
  ASSERT_NE(driver.fail, nullptr);
  bool was_reached = true;
  for (long nth = 1; was_reached && nth <= 40; nth += nth < 12 ? 1 : 5) {
    EXPECT_EQ(fail_one(driver, GetParam(), nth, was_reached), "") << GetParam() << " " << nth;
    EXPECT_TRUE(was_reached || nth != 1) << GetParam() << " is not called at all";
  }
}

}  // namespace
}  // namespace hocket::gpu
