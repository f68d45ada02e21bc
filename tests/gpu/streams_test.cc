// Order of calls on streams.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <numeric>
#include <random>
#include <thread>

#include "device_arrays.h"
#include "foundation/cuda/idle.h"

namespace hocket::gpu {
namespace {

class Streams : public testing::Test {
 protected:
  void SetUp() override {
    if (machine().gpus == 0) GTEST_SKIP() << machine().why_not;
  }
};

// Does the same as run(), and the ranks leave together: a rank that leaves during another's last
// call would end it.
std::string run_together(int size, const std::function<void(GpuRank&)>& body) {
  return run(size, {}, [&](GpuRank& self) {
    body(self);
    self.comm.barrier();
  });
}

// Ints in the GPU's memory.
class Ints {
 public:
  Ints(GpuRank& self, std::size_t count)
      : self_(self), buffer_(self.device, count * 4), count_(count) {}

  void set(const std::vector<std::int32_t>& values, cuda::Stream stream) {
    const auto& gpu = self_.device->driver();
    cuda::check(
        gpu, gpu.memcpy_htod_async(buffer_.address(), values.data(), count_ * 4, stream), "copy");
    cuda::drain(gpu, stream, base::Deadline::in(std::chrono::seconds(30)));
  }
  std::vector<std::int32_t> get(cuda::Stream stream) {
    std::vector<std::int32_t> values(count_);
    const auto& gpu = self_.device->driver();
    cuda::check(
        gpu, gpu.memcpy_dtoh_async(values.data(), buffer_.address(), count_ * 4, stream), "copy");
    if (!cuda::drain(gpu, stream, base::Deadline::in(std::chrono::seconds(30)))) {
      throw std::runtime_error("a stream did not end");
    }
    return values;
  }
  ArrayView view() { return cuda_array(static_cast<std::int32_t*>(buffer_.data()), count_); }

 private:
  GpuRank& self_;
  cuda::DeviceBuffer buffer_;
  std::size_t count_;
};

TEST_F(Streams, ACallWaitsForWhatIsBeforeItAndReturnsAtOnce) {
  std::atomic<int> returned{0};
  const std::string failure = run_together(2, [&](GpuRank& self) {
    const auto& gpu = self.device->driver();
    const cuda::HostBuffer gate(self.device, 64);
    Ints x(self, 100);
    x.set(std::vector<std::int32_t>(100, 5), self.stream.get());
    self.comm.all_reduce(x.view(), {.stream = self.stream.get()});  // engines are made
    // The stream is held up, and has yet to overwrite the array.
    cuda::check(gpu,
                gpu.stream_wait_value32(self.stream.get(), gate.device_address(), 1, 0),
                "hold a stream");
    gpu.memset_d8_async(x.view().data() ? reinterpret_cast<cuda::DevicePtr>(x.view().data()) : 0,
                        static_cast<unsigned char>(self.comm.rank() + 1),
                        400,
                        self.stream.get());
    self.comm.all_reduce(x.view(), {.stream = self.stream.get()});
    Work work = self.comm.all_reduce_async(x.view(), {.stream = self.stream.get()});
    ++returned;
    while (returned < 2) std::this_thread::yield();
    if (work.test()) throw std::runtime_error("a call ended before what it waits for");
    if (work.wait_for(std::chrono::milliseconds(20))) throw std::runtime_error("it ended");
    std::atomic_ref(*reinterpret_cast<std::uint32_t*>(gate.data())).store(1);
    work.synchronize();
    const auto values = x.get(self.stream.get());
    const std::int32_t expected = 2 * (0x01010101 + 0x02020202);
    for (const std::int32_t v : values) {
      if (v != expected) throw std::runtime_error("got " + std::to_string(v));
    }
  });
  EXPECT_EQ(failure, "");
}

TEST_F(Streams, WorkOrdersAnotherStream) {
  const std::string failure = run_together(2, [&](GpuRank& self) {
    const cuda::OwnedStream other(self.device);
    Ints x(self, 1000);
    std::vector<std::int32_t> values(1000);
    std::iota(values.begin(), values.end(), self.comm.rank());
    x.set(values, self.stream.get());
    for (int round = 0; round < 20; ++round) {
      // Turns of two streams on one array.
      const cuda::Stream mine = round % 2 == 0 ? self.stream.get() : other.get();
      const cuda::Stream next = round % 2 == 0 ? other.get() : self.stream.get();
      Work work = self.comm.all_reduce_async(x.view(), {.op = ReduceOp::kMax, .stream = mine});
      work.wait(next);
    }
    const auto found = x.get(self.stream.get());
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i] != static_cast<std::int32_t>(i) + 1) {
        throw std::runtime_error("element " + std::to_string(i) + " is " +
                                 std::to_string(found[i]));
      }
    }
  });
  EXPECT_EQ(failure, "");
}

// Holds up a stream until it is opened; its end waits until that has gone through.
class Gate {
 public:
  explicit Gate(const std::shared_ptr<const cuda::DeviceContext>& device) : words_(device, 64) {
    word(0).store(0);
    word(4).store(0);
  }
  ~Gate() {
    open();
    while (held_ && word(4).load() == 0) std::this_thread::yield();
  }
  void hold_up(const cuda::Driver& gpu, cuda::Stream stream) {
    const cuda::DevicePtr at = words_.device_address();
    cuda::check(gpu, gpu.stream_wait_value32(stream, at, 1, 0), "hold a stream");
    held_ = true;
    cuda::check(gpu, gpu.stream_write_value32(stream, at + 4, 1, 0), "tell that it goes on");
  }
  void open() { word(0).store(1); }

 private:
  std::atomic_ref<std::uint32_t> word(std::size_t at) const {
    return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(words_.data() + at));
  }

  cuda::HostBuffer words_;
  bool held_ = false;
};

// Destroys `old`, and returns a new stream to which the driver has given the same handle. Null if
// it has not.
std::unique_ptr<cuda::OwnedStream> successor_of(std::unique_ptr<cuda::OwnedStream> old,
                                                const GpuRank& self) {
  const cuda::Stream handle = old->get();
  old.reset();
  std::vector<std::unique_ptr<cuda::OwnedStream>> others;
  for (int i = 0; i < 20; ++i) {
    auto made = std::make_unique<cuda::OwnedStream>(self.device);
    if (made->get() == handle) return made;
    others.push_back(std::move(made));
  }
  return nullptr;
}

// Ranks that both have such a stream go on; the driver may give a handle to the other thread.
struct Luck {
  bool all(bool mine) {
    if (!mine) bad = true;
    met.arrive_and_wait();
    return !bad;
  }
  std::atomic<bool> bad{false};
  std::barrier<> met{2};
};

// Both calls are started while the work before the first one is held up.
TEST_F(Streams, ACallFollowsTheLastOnAStreamThatHadItsHandle) {
  Luck luck;
  const std::string failure = run_together(2, [&](GpuRank& self) {
    const auto& gpu = self.device->driver();
    Ints x(self, 100);
    auto first = std::make_unique<cuda::OwnedStream>(self.device);
    x.set(std::vector<std::int32_t>(100, 1000), first->get());
    self.comm.all_reduce(x.view(), {.stream = first->get()});  // engines are made
    cuda::drain(gpu, first->get(), base::Deadline::in(std::chrono::seconds(30)));
    Gate gate(self.device);
    gate.hold_up(gpu, first->get());
    gpu.memset_d8_async(reinterpret_cast<cuda::DevicePtr>(x.view().data()), 1, 400, first->get());
    self.comm.all_reduce(x.view(), {.stream = first->get()});
    const auto second = successor_of(std::move(first), self);
    if (!luck.all(second != nullptr)) return gate.open();
    self.comm.all_reduce(x.view(), {.stream = second->get()});
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // would that it began
    gate.open();
    const std::int32_t got = x.get(second->get())[99];
    if (got != 4 * 0x01010101) throw std::runtime_error("got " + std::to_string(got));
  });
  EXPECT_EQ(failure, "");
  if (luck.bad) GTEST_SKIP() << "the driver gave the handle to no other stream";
}

TEST_F(Streams, WorkHoldsAStreamThatHasTheHandleOfItsOwn) {
  Luck luck;
  const std::string failure = run_together(2, [&](GpuRank& self) {
    const auto& gpu = self.device->driver();
    Ints x(self, 100);
    Ints copy(self, 100);
    auto first = std::make_unique<cuda::OwnedStream>(self.device);
    x.set(std::vector<std::int32_t>(100, 7), first->get());
    copy.set(std::vector<std::int32_t>(100, -1), first->get());
    self.comm.barrier({.stream = first->get()});
    Gate gate(self.device);
    gate.hold_up(gpu, first->get());
    Work work = self.comm.all_reduce_async(x.view(), {.stream = first->get()});
    const auto second = successor_of(std::move(first), self);
    if (!luck.all(second != nullptr)) return gate.open();
    work.wait(second->get());
    gpu.memcpy_async(reinterpret_cast<cuda::DevicePtr>(copy.view().data()),
                     reinterpret_cast<cuda::DevicePtr>(x.view().data()),
                     400,
                     second->get());
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    gate.open();
    const std::int32_t got = copy.get(second->get())[99];
    if (got != 14) throw std::runtime_error("got " + std::to_string(got));
  });
  EXPECT_EQ(failure, "");
  if (luck.bad) GTEST_SKIP() << "the driver gave the handle to no other stream";
}

// A call that only receives is not an exchange in place, because nothing is sent.
TEST_F(Streams, ARankMayGiveNothingAndTakeSomething) {
  const std::string failure = run(2, {"local"}, [&](GpuRank& self) {
    const int rank = self.comm.rank();
    Ints x(self, 9), y(self, 9);
    for (int giver = 0; giver < 2; ++giver) {
      x.set(std::vector<std::int32_t>(9, 10 + rank), self.stream.get());
      y.set(std::vector<std::int32_t>(9, 20), self.stream.get());
      std::vector<std::size_t> sent(2), received(2);
      (rank == giver ? sent : received)[static_cast<std::size_t>(1 - rank)] = 9;
      self.comm.all_to_all_v(x.view().slice(0, rank == giver ? 9 : 0),
                             {.counts = sent},
                             y.view().slice(0, rank == giver ? 0 : 9),
                             {.counts = received},
                             {.stream = self.stream.get()});
      const std::int32_t got = y.get(self.stream.get())[8];
      if (got != (rank == giver ? 20 : 10 + giver)) {
        throw std::runtime_error("got " + std::to_string(got));
      }
    }
  });
  EXPECT_EQ(failure, "");
}

// Ranks that share a GPU. Another rank refuses a call while this rank's arrays have yet to come
// from its stream. The refusal ends this call, and no other.
TEST_F(Streams, ARefusalHeardBeforeTheArraysAreHereIsOfOneCall) {
  if (machine().gpus == 0) GTEST_SKIP() << machine().why_not;
  const int ranks = 2 * machine().gpus;
  std::atomic<int> refusals{0};
  const std::string failure = run(ranks, {"local"}, [&](GpuRank& self) {
    Ints x(self, 100);
    x.set(std::vector<std::int32_t>(100, 1 + self.comm.rank()), self.stream.get());
    self.comm.all_reduce(x.view(), {.stream = self.stream.get()});
    // The driver allocates and frees memory only while no stream is blocked, so nothing here does.
    std::array<std::optional<Gate>, 5> gates;
    for (auto& gate : gates) gate.emplace(self.device);
    self.comm.barrier();
    for (int round = 0; round < 5; ++round) {
      Gate& gate = *gates[static_cast<std::size_t>(round)];
      std::jthread opens;
      const int refuses = round % ranks;
      if (self.comm.rank() != refuses) {
        gate.hold_up(self.device->driver(), self.stream.get());
        opens = std::jthread([&, round] {
          const auto until = base::Deadline::in(std::chrono::seconds(20));
          while (refusals.load() <= round && !until.has_passed()) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
          }
          std::this_thread::sleep_for(std::chrono::milliseconds(30));
          gate.open();
        });
      }
      std::string said = "nothing";
      try {
        const int root = self.comm.rank() == refuses ? 99 : 0;
        self.comm.broadcast(x.view(), {.root = root, .stream = self.stream.get()});
      } catch (const InvalidArgument& refused) {
        said = refused.what();
      }
      if (self.comm.rank() == refuses) ++refusals;
      if (opens.joinable()) opens.join();
      if (said.find("root is 99") == std::string::npos) throw std::runtime_error(said);
      self.comm.all_reduce(x.view(), {.op = ReduceOp::kMax, .stream = self.stream.get()});
    }
    const std::int32_t got = x.get(self.stream.get())[99];
    if (got != ranks * (ranks + 1) / 2) throw std::runtime_error("got " + std::to_string(got));
  });
  EXPECT_EQ(failure, "");
}

// One rank refuses a call that the other has put on its GPU, or is about to, and goes on to the
// next call. Neither rank mistakes one call of the other for another.
TEST_F(Streams, ACallAfterARefusedOneIsNotTakenForIt) {
  if (machine().gpus < 2) GTEST_SKIP() << "two GPUs are wanted";
  constexpr int kRounds = 20;
  const std::string failure = run(2, {"peer"}, [&](GpuRank& self) {
    const int rank = self.comm.rank();
    const StreamRef stream = self.stream.get();
    std::mt19937 draw(static_cast<unsigned>(rank));
    Ints x(self, 1000), y(self, 1000);
    for (int round = 0; round < kRounds; ++round) {
      Communicator group = self.comm.duplicate();
      x.set(std::vector<std::int32_t>(1000, 1 + rank), stream.handle());
      group.all_reduce(x.view(), {.stream = stream});
      self.comm.barrier();
      std::this_thread::sleep_for(std::chrono::microseconds(draw() % 100));
      const auto call = [&](std::size_t count, std::size_t results) -> std::string {
        try {
          group
              .all_reduce_async(ConstArrayView(x.view().slice(0, count)),
                                y.view().slice(0, results),
                                {.stream = stream})
              .synchronize();
          return "";
        } catch (const Error& error) {
          return error.what();
        }
      };
      const std::string first = rank == 0 ? call(1000, 999) : call(1000, 1000);
      if (first.find("out has 999 elements") == std::string::npos) {
        throw std::runtime_error(first + ": so ended the call that rank 0 refused");
      }
      x.set(std::vector<std::int32_t>(1000, 5 + rank), stream.handle());
      const std::string second = call(100, 100);
      if (!second.empty() && second.find("refused") == std::string::npos) {
        throw std::runtime_error(second);
      }
      const std::int32_t got = y.get(stream.handle())[99];
      if (second.empty() && got != 11) {
        throw std::runtime_error("the next call gave " + std::to_string(got));
      }
      self.comm.barrier();
    }
  });
  EXPECT_EQ(failure, "");
}

// After a call is reported as failed, the program may use its arrays and end its process.
TEST_F(Streams, ACallThatHasFailedIsAtWorkNoMore) {
  if (machine().gpus < 2) GTEST_SKIP() << "two GPUs are wanted";
  const std::string failure = run(2, {"peer"}, [&](GpuRank& self) {
    const StreamRef stream = self.stream.get();
    Ints x(self, 1000);
    for (int round = 0; round < 10; ++round) {
      Communicator group = self.comm.duplicate();
      x.set(std::vector<std::int32_t>(1000, 1), stream.handle());
      group.all_reduce(x.view(), {.stream = stream});
      self.comm.barrier();
      if (self.comm.rank() == 1) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1 + round));
        group.abort("in a test");
      } else {
        std::string said = "no error";
        try {  // the abort may come before the call
          group.all_reduce_async(x.view(), {.stream = stream}).synchronize();
        } catch (const Aborted& error) {
          said = error.what();
        }
        const bool is_over = cuda::drained(self.device->driver(), stream.handle());
        if (said.find("in a test") == std::string::npos) throw std::runtime_error(said);
        if (!is_over) throw std::runtime_error("its kernel still runs");
      }
      self.comm.barrier();
    }
  });
  EXPECT_EQ(failure, "");
}

// A deadline that passes is noticed, however many calls follow on the stream.
TEST_F(Streams, MoreCallsThanAnybodyCountsKeepTheirDeadlines) {
  if (!machine().nccl || machine().gpus < 2) GTEST_SKIP() << "NCCL and two GPUs are wanted";
  constexpr int kCalls = 400;
  const std::string failure = run(2, {"nccl"}, [&](GpuRank& self) {
    const auto& gpu = self.device->driver();
    Ints x(self, 100);
    x.set(std::vector<std::int32_t>(100, 1), self.stream.get());
    self.comm.all_reduce(x.view(), {.stream = self.stream.get()});  // engines are made
    cuda::drain(gpu, self.stream.get(), base::Deadline::in(std::chrono::seconds(30)));
    self.comm.barrier();
    // Rank 0's first call has little time, and rank 1 has put its own behind what never ends.
    Gate gate(self.device);
    if (self.comm.rank() == 1) gate.hold_up(gpu, self.stream.get());
    std::string said = "no error";
    try {
      for (int i = 0; i < kCalls; ++i) {
        const Duration allowed = i == 0 && self.comm.rank() == 0 ? Duration(std::chrono::seconds(1))
                                                                 : std::chrono::minutes(10);
        self.comm.all_reduce(x.view(), {.deadline = allowed, .stream = self.stream.get()});
      }
      self.comm.barrier({.stream = self.stream.get()});
      self.comm.all_reduce_async(x.view(), {.stream = self.stream.get()}).synchronize();
    } catch (const DeadlineExceeded& error) {
      said = error.what();
    }
    gate.open();
    cuda::drain(gpu, self.stream.get(), base::Deadline::in(std::chrono::seconds(30)));
    if (said.find("within 1 s") == std::string::npos) throw std::runtime_error(said);
  });
  EXPECT_EQ(failure, "");
}

// Host and device calls in turn keep one order and one numbering.
TEST_F(Streams, HostAndDeviceCallsMix) {
  const std::string failure = run_together(3, [&](GpuRank& self) {
    if (machine().gpus < 1) return;
    Ints x(self, 10);
    for (std::int32_t round = 1; round <= 50; ++round) {
      x.set(std::vector<std::int32_t>(10, self.comm.rank() + round), self.stream.get());
      std::int64_t host = round;
      Work pending = self.comm.all_reduce_async(scalar(host));
      self.comm.all_reduce(x.view(), {.stream = self.stream.get()});
      self.comm.barrier();
      pending.wait();
      if (host != 3 * round) throw std::runtime_error("host: " + std::to_string(host));
      const auto values = x.get(self.stream.get());
      if (values[9] != 3 + 3 * round) {
        throw std::runtime_error("device: " + std::to_string(values[9]));
      }
    }
  });
  EXPECT_EQ(failure, "");
}

// Plans of several kinds are kept beside each other, and follow the time that a call is given.
TEST_F(Streams, CallsOfSeveralKindsComeAgainInTurns) {
  const std::string failure = run_together(2, [&](GpuRank& self) {
    Ints x(self, 64), y(self, 64), both(self, 128);
    const cuda::Stream stream = self.stream.get();
    const std::int32_t rank = self.comm.rank();
    for (std::int32_t round = 1; round <= 6; ++round) {
      const Duration allowed = std::chrono::seconds(round % 3 == 0 ? 20 : 30);
      std::vector<std::int32_t> own(64);
      std::iota(own.begin(), own.end(), 100 * round + 10 * rank);
      x.set(own, stream);
      const ConstArrayView in(x.view());
      self.comm.all_reduce(in, y.view(), {.deadline = allowed, .stream = stream});
      self.comm.all_gather(in, both.view(), {.deadline = allowed, .stream = stream});
      self.comm.broadcast(x.view(), {.root = round % 2, .deadline = allowed, .stream = stream});
      const auto sums = y.get(stream), parts = both.get(stream), sent = x.get(stream);
      for (std::int32_t i = 0; i < 64; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const std::int32_t first = 100 * round + i;
        if (sums[at] != 2 * first + 10 || parts[at] != first || parts[at + 64] != first + 10 ||
            sent[at] != first + 10 * (round % 2)) {
          throw std::runtime_error("round " + std::to_string(round) + " is wrong");
        }
      }
    }
  });
  EXPECT_EQ(failure, "");
}

TEST_F(Streams, PreparedCallsAreMadeAgainAndAgain) {
  const std::string failure = run_together(2, [&](GpuRank& self) {
    Ints x(self, 64);
    Ints y(self, 64);
    Prepared call = self.comm.prepare_all_reduce(
        ConstArrayView(x.view()), y.view(), {.stream = self.stream.get()});
    for (std::int32_t round = 0; round < 30; ++round) {
      x.set(std::vector<std::int32_t>(64, round * (self.comm.rank() + 1)), self.stream.get());
      call();
      if (y.get(self.stream.get())[63] != 3 * round) throw std::runtime_error("wrong sum");
    }
  });
  EXPECT_EQ(failure, "");
}

// One rank's way through rounds of messages with the other.
void messages_go_round(GpuRank& self, std::int32_t first, std::int32_t end) {
  const MessageOptions here{.stream = self.stream.get()};
  const int other = 1 - self.comm.rank();
  Ints x(self, 300'000);
  Ints y(self, 300'000);
  for (std::int32_t round = first; round < end; ++round) {
    x.set(std::vector<std::int32_t>(300'000, 10 * round + self.comm.rank()), self.stream.get());
    if (round % 2 == 0) {
      self.comm.send_recv(x.view(), y.view(), other, here);
    } else if (self.comm.rank() == 0) {
      self.comm.send(x.view(), other, here);
      self.comm.recv(y.view(), other, here);
    } else {
      self.comm.recv(y.view(), other, here);
      self.comm.send(x.view(), other, here);
    }
    if (y.get(self.stream.get())[299'999] != 10 * round + other) {
      throw std::runtime_error("a message of round " + std::to_string(round) + " is wrong");
    }
  }
}

// Before the first collective the host carries them, and where there is no engine for messages.
TEST_F(Streams, MessagesGoRound) {
  if (machine().gpus < 2) GTEST_SKIP() << "two GPUs are wanted";
  const std::string failure = run_together(2, [&](GpuRank& self) {
    messages_go_round(self, 0, 4);
    self.comm.barrier({.stream = self.stream.get()});
    messages_go_round(self, 4, 10);
  });
  EXPECT_EQ(failure, "");
}

// By the host, and where the GPUs know each other.
TEST_F(Streams, AMessageMayComeFromAnybody) {
  if (machine().gpus < 3) GTEST_SKIP() << "three GPUs are wanted";
  const std::string failure = run_together(3, [&](GpuRank& self) {
    const MessageOptions here{.stream = self.stream.get()};
    Ints x(self, 1000);
    for (const std::int32_t round : {0, 1, 2, 3}) {
      self.comm.barrier();  // or a rank sends twice before another has once
      if (round == 2) self.comm.barrier({.stream = self.stream.get()});
      if (self.comm.rank() != 0) {
        x.set(std::vector<std::int32_t>(1000, 10 * round + self.comm.rank()), self.stream.get());
        self.comm.send(x.view(), 0, here);
        x.get(self.stream.get());
        continue;
      }
      int seen = 0;
      for (int i = 0; i < 2; ++i) {
        const Received received = self.comm.recv(x.view(), kAnySource, here);
        const std::int32_t got = x.get(self.stream.get())[999];
        if (got != 10 * round + received.source) throw std::runtime_error(std::to_string(got));
        seen |= 1 << received.source;
      }
      if (seen != 6) throw std::runtime_error("one rank's message came twice");
    }
    self.comm.barrier();
  });
  EXPECT_EQ(failure, "");
}

// A rank sends a message before the first collective, and the other receives it after that. Both
// ends of each message must agree whether it goes through the host.
TEST_F(Streams, MessagesCrossTheFirstCollective) {
  if (machine().gpus < 2) GTEST_SKIP() << "two GPUs are wanted";
  const std::string failure = run_together(2, [&](GpuRank& self) {
    const MessageOptions here{.stream = self.stream.get()};
    constexpr std::int32_t kMessages = 5;
    std::vector<Ints> arrays;
    for (std::int32_t i = 0; i < 2 * kMessages; ++i) {
      arrays.emplace_back(self, 1000);
      arrays.back().set(std::vector<std::int32_t>(1000, i), self.stream.get());
    }
    const bool sends = self.comm.rank() == 0;
    const auto message = [&](std::int32_t i) {
      Ints& array = arrays[static_cast<std::size_t>(i)];
      if (sends) {
        self.comm.send(array.view(), 1, here);
      } else {
        array.set(std::vector<std::int32_t>(1000, -1), self.stream.get());
        self.comm.recv(array.view(), 0, here);
        const std::int32_t got = array.get(self.stream.get())[999];
        if (got != i) throw std::runtime_error(std::to_string(got) + " for " + std::to_string(i));
      }
    };
    const std::int32_t before = sends ? kMessages : 2;
    for (std::int32_t i = 0; i < before; ++i) message(i);
    self.comm.barrier({.stream = self.stream.get()});
    for (std::int32_t i = before; i < 2 * kMessages; ++i) message(i);
  });
  EXPECT_EQ(failure, "");
}

TEST_F(Streams, AReproducibleSumGoesByTheHost) {
  const std::string failure = run_together(2, [&](GpuRank& self) {
    Ints x(self, 20);
    Ints y(self, 10);
    std::vector<std::int32_t> values(20);
    std::iota(values.begin(), values.end(), 100 * self.comm.rank());
    x.set(values, self.stream.get());
    self.comm.reproducible_sum(ConstArrayView(x.view()), y.view(), {.stream = self.stream.get()});
    const auto sums = y.get(self.stream.get());
    if (sums[3] != 3 + 13 + 103 + 113) throw std::runtime_error(std::to_string(sums[3]));
  });
  EXPECT_EQ(failure, "");
}

TEST_F(Streams, NobodyWaitsForAStreamForEver) {
  const Gpu gpu(0);
  const GpuStream stream(gpu);
  GpuEvent mark(gpu);
  stream.synchronize(std::chrono::seconds(30));
  Gate gate(gpu.context());
  {
    const cuda::DeviceGuard guard(*gpu.context());
    gate.hold_up(gpu.context()->driver(), stream.ref().handle());
  }
  mark.record(stream);
  EXPECT_THROW(stream.synchronize(std::chrono::milliseconds(20)), DeadlineExceeded);
  EXPECT_THROW(mark.synchronize(std::chrono::milliseconds(20)), DeadlineExceeded);
  gate.open();
  mark.synchronize(std::chrono::seconds(30));
  stream.synchronize(std::chrono::seconds(30));
}

// After messages alone, no call has a number.
TEST_F(Streams, AStreamThatHangsAfterMessagesEndsTheCommunicator) {
  if (machine().gpus < 2) GTEST_SKIP() << "two GPUs are wanted";
  const std::string failure = run(2, {}, [&](GpuRank& self) {
    Ints x(self, 8);
    Gate gate(self.device);
    self.comm.set_deadline(std::chrono::milliseconds(300));
    gate.hold_up(self.device->driver(), self.stream.get());
    const MessageOptions here{.stream = self.stream.get()};
    self.comm.rank() == 0 ? self.comm.send(x.view(), 1, here)
                          : static_cast<void>(self.comm.recv(x.view(), 0, here));
    self.comm.close();
    gate.open();
  });
  EXPECT_NE(failure, "");
}

TEST_F(Streams, MemoryGoesWhenTheGpuHasNoWorkAnyMore) {
  const auto device = std::make_shared<const cuda::DeviceContext>(driver(), 0);
  const cuda::DeviceGuard guard(*device);
  const cuda::OwnedStream stream(device);
  std::atomic<bool> gone{false};
  const auto memory = [&gone] {
    return std::shared_ptr<void>(&gone, [](void* at) { *static_cast<std::atomic<bool>*>(at) = 1; });
  };
  EXPECT_TRUE(
      cuda::release_when_idle(device, memory(), base::Deadline::in(std::chrono::seconds(30))));
  EXPECT_TRUE(gone);
  gone = false;
  Gate gate(device);
  gate.hold_up(device->driver(), stream.get());
  EXPECT_FALSE(
      cuda::release_when_idle(device, memory(), base::Deadline::in(std::chrono::milliseconds(20))));
  EXPECT_FALSE(gone);
  gate.open();
  const auto until = base::Deadline::in(std::chrono::seconds(30));
  while (!gone && !until.has_passed()) std::this_thread::yield();
  EXPECT_TRUE(gone);
}

}  // namespace
}  // namespace hocket::gpu
