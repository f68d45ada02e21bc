// The ranks of a host announce the processors on which they run.
#include <gtest/gtest.h>
#include <sched.h>

#include <chrono>
#include <memory>
#include <vector>

#include "hocket/error.h"
#include "membership/control/host/host.h"

namespace hocket::control {
namespace {

using Asks = ProcessorSharing::Asks;

// The processors that this thread may use, which it is given back at the end.
class Processors {
 public:
  Processors() {
    sched_getaffinity(0, sizeof(all_), &all_);
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(i, &all_)) numbers_.push_back(i);
    }
  }
  ~Processors() { use_all(); }
  void use_all() const { sched_setaffinity(0, sizeof(all_), &all_); }
  bool uses_all() const {
    cpu_set_t now;
    return sched_getaffinity(0, sizeof(now), &now) == 0 && CPU_EQUAL(&now, &all_);
  }
  std::size_t count() const { return numbers_.size(); }
  // From its return on this thread runs there and nowhere else.
  void keep_to(std::size_t i) const {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(numbers_[i], &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  }

 private:
  cpu_set_t all_ = {};
  std::vector<int> numbers_;
};

std::shared_ptr<os::Segment> segment_of(int ranks) {
  const HostShape shape{.ranks = ranks, .stripe_bytes = 4096};
  auto segment =
      std::make_shared<os::Segment>(os::Segment::create_private(HostControl::segment_bytes(shape)));
  HostControl::format(*segment, shape);
  return segment;
}

TEST(HostControl, HasNoMoreRanksThanCanHoldABlock) {
  const auto bytes = [](int ranks) {
    return HostControl::segment_bytes({.ranks = ranks, .stripe_bytes = 4096});
  };
  EXPECT_GT(bytes(HostControl::kMostRanks), bytes(1));
  EXPECT_THROW(bytes(HostControl::kMostRanks + 1), InvalidArgument);
}

TEST(HostControl, AllRanksAgreeWhichOfThemMaySpin) {
  const auto segment = segment_of(3);
  HostControl first(segment, 0), second(segment, 1), third(segment, 2);
  first.processors.set_may_spin(true);
  second.processors.set_may_spin(false);
  for (const HostControl* host : {&first, &second, &third}) {
    EXPECT_TRUE(host->processors.may_spin(0));
    EXPECT_FALSE(host->processors.may_spin(1));
    EXPECT_FALSE(host->processors.may_spin(2)) << "it has not said so";
  }
  EXPECT_TRUE(first.processors.may_spin());
  EXPECT_FALSE(second.processors.may_spin());
}

TEST(HostControl, TheMachineIsBusyForARankThatLosesItsProcessorForHalfOfTheTime) {
  struct Loss {
    std::int64_t from, to;  // ms
  };
  struct Case {
    const char* what;
    std::vector<Loss> losses;
    bool is_busy;
  };
  const Case cases[] = {
      {"none", {}, false},
      {"once, by a hypervisor", {{0, 20}}, false},
      {"now and then", {{0, 3}, {100, 103}, {200, 203}}, false},
      {"more than half of it", {{0, 4}, {10, 14}}, true},
      {"less than half of it", {{0, 4}, {14, 18}}, false},
      {"among thirty others", {{0, 45}, {48, 93}}, true},
      {"after a time alone", {{0, 45}, {3000, 3045}, {3048, 3093}}, true},
  };
  const std::int64_t now =
      std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  for (const Case& each : cases) {
    SCOPED_TRACE(each.what);
    const auto segment = segment_of(2);
    HostControl a(segment, 0), b(segment, 1);
    for (const Loss& loss : each.losses) {
      a.processors.note_lost_turn(now + loss.from * 1'000'000, now + loss.to * 1'000'000);
    }
    EXPECT_EQ(a.processors.is_busy(), each.is_busy);
    EXPECT_FALSE(b.processors.is_busy());
  }
}

TEST(HostControl, WhoWaitsOnTheSameProcessorIsKnownOnce) {
  const Processors processors;
  processors.keep_to(0);
  const auto segment = segment_of(3);
  HostControl a(segment, 0), b(segment, 1), c(segment, 2);
  EXPECT_FALSE(a.processors.shares_processor(Asks::kCaller));  // the first that tells
  EXPECT_TRUE(b.processors.shares_processor(Asks::kCaller));
  EXPECT_FALSE(b.processors.shares_processor(Asks::kCaller));  // a has not said so again
  EXPECT_TRUE(c.processors.shares_processor(Asks::kCaller));   // b
  EXPECT_TRUE(a.processors.shares_processor(Asks::kCaller));   // c
}

TEST(HostControl, ARankLeavesTheProcessorOfAnother) {
  const Processors processors;
  if (processors.count() < 2) GTEST_SKIP() << "there is one processor";
  const auto segment = segment_of(2);
  HostControl a(segment, 0), b(segment, 1);
  b.processors.set_may_spin(true);
  processors.keep_to(0);
  EXPECT_FALSE(a.processors.shares_processor(Asks::kCaller));
  processors.use_all();
  EXPECT_FALSE(b.processors.shares_processor(Asks::kCaller));
  EXPECT_TRUE(processors.uses_all());
  processors.keep_to(0);
  EXPECT_FALSE(a.processors.shares_processor(Asks::kCaller));
  EXPECT_TRUE(b.processors.shares_processor(Asks::kCaller));  // it has nowhere to go
}

TEST(HostControl, TheBackgroundAsksAboutItsOwnCallerAndTellsNothing) {
  const Processors processors;
  processors.keep_to(0);
  const auto segment = segment_of(2);
  HostControl a(segment, 0), b(segment, 1);
  EXPECT_FALSE(a.processors.shares_processor(Asks::kBackground));
  EXPECT_FALSE(b.processors.shares_processor(Asks::kCaller));  // so a has announced nothing
  EXPECT_TRUE(b.processors.shares_processor(Asks::kBackground));
  EXPECT_TRUE(a.processors.shares_processor(Asks::kBackground));
  EXPECT_TRUE(a.processors.shares_processor(Asks::kCaller));  // asking has taken nothing away
}

TEST(HostControl, OtherProcessorsAreNotShared) {
  const Processors processors;
  if (processors.count() < 2) GTEST_SKIP() << "there is one processor";
  const auto segment = segment_of(2);
  HostControl a(segment, 0), b(segment, 1);
  processors.keep_to(0);
  EXPECT_FALSE(a.processors.shares_processor(Asks::kCaller));
  processors.keep_to(1);
  EXPECT_FALSE(b.processors.shares_processor(Asks::kCaller));
  processors.keep_to(0);
  EXPECT_FALSE(a.processors.shares_processor(Asks::kCaller));
  EXPECT_TRUE(b.processors.shares_processor(Asks::kCaller));  // it has come to a's
}

}  // namespace
}  // namespace hocket::control
