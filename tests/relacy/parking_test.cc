// Sleeping on a doorbell, and ringing it (control/host/doorbells.h), with and without membarrier.
#include "calls/call/waiter.h"
#include "foundation/base/atomic.h"
#include "host.h"
#include "membership/control/host/host.h"
#include "scenario.h"

namespace hocket::control {
namespace {

// The last thread waits for a word of each of the others, which store it and ring.
template <bool kFence, int kRanks>
class Sleeper : public relacy::Program {
 public:
  static constexpr int kThreads = kRanks;
  void thread(int rank) override {
    HostControl& own = host_.host(rank);
    if (rank != kRanks - 1) {
      words_[rank].store(1, std::memory_order_release);
      own.doorbells.ring(kRanks - 1);
      return;
    }
    for (int peer = 0; peer < kRanks - 1; ++peer) {
      while (!has_come(peer)) {
        const std::uint32_t ticket = own.doorbells.before_sleep();
        if (!has_come(peer)) own.doorbells.sleep(ticket, base::Deadline::never());
        own.doorbells.after_sleep();
      }
    }
  }

 private:
  bool has_come(int peer) { return words_[peer].load(std::memory_order_acquire) == 1; }

  relacy::Host host_{kRanks, kFence};
  base::Atomic<int> words_[kRanks];
};

// A wait, from its first look to its sleep, beside a thread that wakes all ranks: on leaving, on
// failing.
class WaiterBesideRingAll : public relacy::Program {
 public:
  static constexpr int kThreads = 2;
  void thread(int rank) override {
    if (rank == 0) {
      word_.store(1, std::memory_order_relaxed);
      host_.host(0).doorbells.ring_all();
      return;
    }
    call::Waiter waiter(host_.host(1));
    while (word_.load(std::memory_order_relaxed) != 1) waiter.pause();
  }

 private:
  relacy::Host host_{2};
  base::Atomic<int> word_;
};

const relacy::Harmless kWeakEnough = {
    {"ring_parked", "what was stored is seen by its own order; the bell's only wakes"},
    {"before_sleep", "the heavy fence orders; the bell's value is checked by the kernel"},
    {"parking_test.cc", "nothing else hangs on the word here"}};
// Counted down, so that the next ring is as quick as it was.
const relacy::Harmless kLeftOut = {
    {"after_sleep", "a rank that seems to sleep is only rung once more"}};

TEST(Parking, NobodySleepsThroughARing) {
  relacy::holds_and_needs_all<Sleeper<true, 2>>(kWeakEnough, kLeftOut, 3'000);
}

TEST(Parking, NobodySleepsThroughTheRingOfOneOfTwo) {
  relacy::holds_and_needs_all<Sleeper<true, 3>>(kWeakEnough, kLeftOut, 3'000);
}

TEST(Parking, WithoutMembarrierSleepsAreShort) {
  const auto outcome = relacy::simulate(2,
                                        [] { return std::make_unique<Sleeper<false, 2>>(); },
                                        {.executions = relacy::executions(3'000)});
  EXPECT_TRUE(outcome.passed) << outcome.text;
}

TEST(Parking, AWaiterHearsWhoRingsAll) {
  const auto outcome = relacy::simulate(2,
                                        [] { return std::make_unique<WaiterBesideRingAll>(); },
                                        {.executions = relacy::executions(3'000)});
  EXPECT_TRUE(outcome.passed) << outcome.text;
}

}  // namespace
}  // namespace hocket::control
