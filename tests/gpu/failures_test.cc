// What is refused, and what ends a call on a GPU.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "device_arrays.h"

namespace hocket::gpu {
namespace {

using std::chrono::milliseconds;

class Failures : public testing::Test {
 protected:
  void SetUp() override {
    if (machine().gpus == 0) GTEST_SKIP() << machine().why_not;
  }
};

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
  Floats(Seat& seat, std::size_t elements) : buffer(seat.device, elements * 4), count(elements) {}
  ArrayView view(int device = kAnyDevice) {
    return cuda_array(static_cast<float*>(buffer.data()), count, device);
  }
  cuda::DeviceBuffer buffer;
  std::size_t count;
};

TEST_F(Failures, RefusedAlikeTheCommunicatorGoesOn) {
  const std::string failure = run(2, {}, [&](Seat& seat) {
    Floats x(seat, 8);
    std::vector<float> host(8);
    const auto mixed = [&] { seat.comm.all_reduce(host, x.view()); };
    expect(message_of<InvalidArgument>(mixed), "out lies in a GPU's memory and in in the host's");
    const auto elsewhere = [&] { seat.comm.all_reduce(x.view(17), {.stream = seat.stream.get()}); };
    expect(message_of<InvalidArgument>(elsewhere), "GPU 17");
    const auto none = [&] {
      seat.comm.all_reduce(cuda_array(host.data(), 8), {.stream = seat.stream.get()});
    };
    expect(message_of<InvalidArgument>(none), "is said to lie in a GPU's memory and does not");
    seat.comm.all_reduce(x.view(), {.stream = seat.stream.get()});
    seat.comm.barrier();
  });
  EXPECT_EQ(failure, "");
}

TEST_F(Failures, AMismatchIsFoundByAll) {
  const std::string failure = run(2, {}, [&](Seat& seat) {
    Floats x(seat, 8);
    seat.comm.all_reduce(x.view(), {.stream = seat.stream.get()});
    const auto differ = [&] {
      const std::size_t count = seat.comm.rank() == 0 ? 8 : 4;
      Work work =
          seat.comm.all_reduce_async(x.view().slice(0, count), {.stream = seat.stream.get()});
      work.synchronize();
      seat.comm.barrier();
    };
    expect(message_of<Mismatch>(differ), "all_reduce #");
    const auto after = [&] { seat.comm.all_reduce(x.view(), {.stream = seat.stream.get()}); };
    expect(message_of<Mismatch>(after), "on GPUs");
    // The GPU can be used further.
    if (!cuda::drain(seat.device->driver(),
                     seat.stream.get(),
                     base::Deadline::in(std::chrono::seconds(20)))) {
      throw std::runtime_error("the stream hangs");
    }
  });
  EXPECT_EQ(failure, "");
}

TEST_F(Failures, ARankThatNeverCallsEndsInTheDeadline) {
  std::atomic<bool> over{false};
  const std::string failure = run(2, {}, [&](Seat& seat) {
    Floats x(seat, 8);
    seat.comm.all_reduce(x.view(), {.stream = seat.stream.get()});
    if (seat.comm.rank() == 1) {
      while (!over) std::this_thread::sleep_for(milliseconds(1));
      return;
    }
    Work work = seat.comm.all_reduce_async(
        x.view(), {.deadline = milliseconds(200), .stream = seat.stream.get()});
    const std::string text = message_of<DeadlineExceeded>([&] { work.synchronize(); });
    over = true;
    expect(text, "did not finish within 0.2 s");
    expect(text, "rank 1");
    if (!cuda::drain(seat.device->driver(),
                     seat.stream.get(),
                     base::Deadline::in(std::chrono::seconds(20)))) {
      throw std::runtime_error("the stream hangs");
    }
  });
  EXPECT_EQ(failure, "");
}

TEST_F(Failures, AnAbortEndsWhatIsUnderWay) {
  const std::string failure = run(2, {}, [&](Seat& seat) {
    Floats x(seat, 8);
    seat.comm.all_reduce(x.view(), {.stream = seat.stream.get()});
    if (seat.comm.rank() == 1) {
      std::this_thread::sleep_for(milliseconds(50));
      seat.comm.abort("enough");
      return;
    }
    Work work = seat.comm.all_reduce_async(x.view(), {.stream = seat.stream.get()});
    expect(message_of<Aborted>([&] { work.synchronize(); }), "enough");
    if (!cuda::drain(seat.device->driver(),
                     seat.stream.get(),
                     base::Deadline::in(std::chrono::seconds(20)))) {
      throw std::runtime_error("the stream hangs");
    }
  });
  EXPECT_EQ(failure, "");
}

TEST_F(Failures, ARefusalByOneEndsTheOthersCall) {
  const std::string failure = run(2, {}, [&](Seat& seat) {
    Floats x(seat, 8);
    Floats y(seat, 4);
    seat.comm.all_reduce(x.view(), {.stream = seat.stream.get()});
    if (seat.comm.rank() == 1) {
      expect(message_of<InvalidArgument>([&] {
               seat.comm.all_reduce(
                   ConstArrayView(x.view()), y.view(), {.stream = seat.stream.get()});
             }),
             "out has 4 elements");
      return;
    }
    Work work = seat.comm.all_reduce_async(x.view(), {.stream = seat.stream.get()});
    const std::string text = message_of<Error>([&] { work.synchronize(); });
    expect(text, "refused");
    expect(text, "out has 4 elements");
  });
  EXPECT_EQ(failure, "");
}

}  // namespace
}  // namespace hocket::gpu
