// Refused calls, and errors that end a call on a GPU.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "device_arrays.h"

namespace hocket::gpu {
namespace {

using std::chrono::milliseconds;

// By engine; empty: hocket chooses.
class Failures : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (machine().gpus == 0) GTEST_SKIP() << machine().why_not;
    if (GetParam() != "nccl") return;
    if (!machine().nccl || machine().gpus < 2) GTEST_SKIP() << "NCCL and two GPUs are wanted";
  }
  std::string run_two(const std::function<void(GpuRank&)>& body) {
    std::vector<std::string> engines;
    if (!GetParam().empty()) engines = {GetParam()};
    return run(2, engines, body);
  }
};
INSTANTIATE_TEST_SUITE_P(All, Failures, testing::Values("", "nccl"), [](const auto& tested) {
  return tested.param.empty() ? "Chosen" : tested.param;
});

template <typename E>
std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another error: ") + error.what();
  }
  return "no error";
}

void expect(const std::string& text, const std::string& part) {
  if (text.find(part) == std::string::npos) {
    throw std::runtime_error("\"" + part + "\" is not in \"" + text + "\"");
  }
}

struct Floats {
  Floats(GpuRank& self, std::size_t elements)
      : buffer(self.device, elements * 4), count(elements) {}
  ArrayView view(int device = kAnyDevice) {
    return cuda_array(static_cast<float*>(buffer.data()), count, device);
  }
  cuda::DeviceBuffer buffer;
  std::size_t count;
};

TEST_P(Failures, RefusedAlikeTheCommunicatorGoesOn) {
  const std::string failure = run_two([&](GpuRank& self) {
    Floats x(self, 8);
    std::vector<float> host(8);
    const auto mixed = [&] { self.comm.all_reduce(host, x.view()); };
    expect(message_of<InvalidArgument>(mixed), "out lies in a GPU's memory and in in the host's");
    const auto elsewhere = [&] { self.comm.all_reduce(x.view(17), {.stream = self.stream.get()}); };
    expect(message_of<InvalidArgument>(elsewhere), "GPU 17");
    const auto none = [&] {
      self.comm.all_reduce(cuda_array(host.data(), 8), {.stream = self.stream.get()});
    };
    expect(message_of<InvalidArgument>(none), "is said to lie in a GPU's memory and does not");
    self.comm.all_reduce(x.view(), {.stream = self.stream.get()});
    self.comm.barrier();
  });
  EXPECT_EQ(failure, "");
}

TEST_P(Failures, AMismatchIsFoundByAll) {
  const std::string failure = run_two([&](GpuRank& self) {
    Floats x(self, 8);
    self.comm.all_reduce(x.view(), {.stream = self.stream.get()});
    const auto differ = [&] {
      const std::size_t count = self.comm.rank() == 0 ? 8 : 4;
      Work work =
          self.comm.all_reduce_async(x.view().slice(0, count), {.stream = self.stream.get()});
      work.synchronize();
      self.comm.barrier();
    };
    expect(message_of<Mismatch>(differ), "all_reduce #");
    const auto after = [&] { self.comm.all_reduce(x.view(), {.stream = self.stream.get()}); };
    expect(message_of<Mismatch>(after), "on GPUs");
    // The GPU can be used further.
    if (!cuda::drain(self.device->driver(),
                     self.stream.get(),
                     base::Deadline::in(std::chrono::seconds(20)))) {
      throw std::runtime_error("the stream hangs");
    }
  });
  EXPECT_EQ(failure, "");
}

TEST_P(Failures, ARankThatNeverCallsEndsInTheDeadline) {
  for (const bool again : {false, true}) {
    std::atomic<bool> over{false};
    const std::string failure = run_two([&](GpuRank& self) {
      Floats x(self, 8);
      self.comm.all_reduce(x.view(), {.deadline = kForever, .stream = self.stream.get()});
      if (self.comm.rank() == 1) {
        while (!over) std::this_thread::sleep_for(milliseconds(1));
        return;
      }
      const std::string text = message_of<DeadlineExceeded>([&] {
        const ReduceOptions brief{.deadline = milliseconds(200), .stream = self.stream.get()};
        if (again) self.comm.all_reduce(x.view(), brief);  // which had all time before
        self.comm.all_reduce_async(x.view(), brief).synchronize();
      });
      over = true;
      expect(text, "did not finish within 0.2 s");
      expect(text, "rank 1");
      if (!cuda::drain(self.device->driver(),
                       self.stream.get(),
                       base::Deadline::in(std::chrono::seconds(20)))) {
        throw std::runtime_error("the stream hangs");
      }
    });
    EXPECT_EQ(failure, "");
  }
}

// With GPUs that know each other or not, that have exchanged messages before or not.
TEST_P(Failures, AMessageThatNeverComesEndsInTheDeadline) {
  for (const int way : {0, 1, 2, 3}) {
    const bool introduced = way / 2 != 0, again = way % 2 != 0;
    std::atomic<bool> over{false};
    const std::string failure = run_two([&](GpuRank& self) {
      Floats x(self, 8);
      Floats y(self, 8);
      const int peer = 1 - self.comm.rank();
      if (introduced) self.comm.barrier({.stream = self.stream.get()});
      if (again) {
        self.comm.send_recv(x.view(), peer, y.view(), peer, {.stream = self.stream.get()});
      }
      if (self.comm.rank() == 1) {
        while (!over) std::this_thread::sleep_for(milliseconds(1));
        return;
      }
      const std::string text = message_of<DeadlineExceeded>([&] {
        self.comm
            .recv_async(x.view(), 1, {.deadline = milliseconds(300), .stream = self.stream.get()})
            .synchronize();
      });
      over = true;
      expect(text, "within 0.3 s");
      expect(text, "rank 1");
      if (!cuda::drain(self.device->driver(),
                       self.stream.get(),
                       base::Deadline::in(std::chrono::seconds(20)))) {
        throw std::runtime_error("the stream hangs");
      }
    });
    EXPECT_EQ(failure, "") << "introduced: " << introduced << ", again: " << again;
  }
}

// Both as the first call of the GPUs and after another one.
TEST_P(Failures, MessagesOfDifferentSizesAreAMismatch) {
  for (const bool introduced : {false, true}) {
    const std::string failure = run_two([&](GpuRank& self) {
      Floats x(self, 8);
      if (introduced) self.comm.barrier({.stream = self.stream.get()});
      const MessageOptions here{.stream = self.stream.get()};
      const std::string text = message_of<Mismatch>([&] {
        if (self.comm.rank() == 0) {
          self.comm.send_async(x.view(), 1, here).synchronize();
        } else {
          self.comm.recv_async(x.view().slice(0, 4), 0, here).synchronize();
        }
        while (true) self.comm.barrier();
      });
      expect(text, "float32[8]");
      expect(text, "float32[4]");
      if (!cuda::drain(self.device->driver(),
                       self.stream.get(),
                       base::Deadline::in(std::chrono::seconds(20)))) {
        throw std::runtime_error("the stream hangs");
      }
    });
    EXPECT_EQ(failure, "") << "introduced: " << introduced;
  }
}

TEST_P(Failures, AnAbortEndsWhatIsUnderWay) {
  const std::string failure = run_two([&](GpuRank& self) {
    Floats x(self, 8);
    self.comm.all_reduce(x.view(), {.stream = self.stream.get()});
    if (self.comm.rank() == 1) {
      std::this_thread::sleep_for(milliseconds(50));
      self.comm.abort("enough");
      return;
    }
    const auto call = [&] {
      self.comm.all_reduce_async(x.view(), {.stream = self.stream.get()}).synchronize();
    };
    expect(message_of<Aborted>(call), "enough");
    if (!cuda::drain(self.device->driver(),
                     self.stream.get(),
                     base::Deadline::in(std::chrono::seconds(20)))) {
      throw std::runtime_error("the stream hangs");
    }
  });
  EXPECT_EQ(failure, "");
}

TEST_P(Failures, ARefusalByOneEndsTheOthersCall) {
  const std::string failure = run_two([&](GpuRank& self) {
    Floats x(self, 8);
    Floats y(self, 4);
    self.comm.all_reduce(x.view(), {.stream = self.stream.get()});
    if (self.comm.rank() == 1) {
      expect(message_of<InvalidArgument>([&] {
               self.comm.all_reduce(
                   ConstArrayView(x.view()), y.view(), {.stream = self.stream.get()});
             }),
             "out has 4 elements");
      return;
    }
    const std::string text = message_of<Error>(
        [&] { self.comm.all_reduce_async(x.view(), {.stream = self.stream.get()}).synchronize(); });
    expect(text, "refused");
    expect(text, "out has 4 elements");
  });
  EXPECT_EQ(failure, "");
}

}  // namespace
}  // namespace hocket::gpu
