// What the ranks of a host tell each other of where they run.
#include <gtest/gtest.h>
#include <sched.h>

#include <memory>
#include <vector>

#include "control/host.h"
#include "hocket/error.h"

namespace hocket::control {
namespace {

using Asks = HostControl::Asks;

// The processors that this thread may use, which it is given back at the end.
class Processors {
 public:
  Processors() {
    sched_getaffinity(0, sizeof(all_), &all_);
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(i, &all_)) numbers_.push_back(i);
    }
  }
  ~Processors() { sched_setaffinity(0, sizeof(all_), &all_); }
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

TEST(HostControl, TheMachineIsBusyForARankThatHasSaidSo) {
  const auto segment = segment_of(2);
  HostControl a(segment, 0), b(segment, 1);
  EXPECT_FALSE(a.is_busy());
  a.note_busy();
  EXPECT_TRUE(a.is_busy());
  EXPECT_FALSE(b.is_busy());
}

TEST(HostControl, WhoWaitsOnTheSameProcessorIsKnownOnce) {
  const Processors processors;
  processors.keep_to(0);
  const auto segment = segment_of(3);
  HostControl a(segment, 0), b(segment, 1), c(segment, 2);
  EXPECT_FALSE(a.shares_processor(Asks::kCaller));  // the first that tells
  EXPECT_TRUE(b.shares_processor(Asks::kCaller));
  EXPECT_FALSE(b.shares_processor(Asks::kCaller));  // a has not said so again
  EXPECT_TRUE(c.shares_processor(Asks::kCaller));   // b
  EXPECT_TRUE(a.shares_processor(Asks::kCaller));   // c
}

TEST(HostControl, TheBackgroundAsksAboutItsOwnCallerAndTellsNothing) {
  const Processors processors;
  processors.keep_to(0);
  const auto segment = segment_of(2);
  HostControl a(segment, 0), b(segment, 1);
  EXPECT_FALSE(a.shares_processor(Asks::kBackground));
  EXPECT_FALSE(b.shares_processor(Asks::kCaller));  // so a has told nothing
  EXPECT_TRUE(b.shares_processor(Asks::kBackground));
  EXPECT_TRUE(a.shares_processor(Asks::kBackground));
  EXPECT_TRUE(a.shares_processor(Asks::kCaller));  // asking has taken nothing away
}

TEST(HostControl, OtherProcessorsAreNotShared) {
  const Processors processors;
  if (processors.count() < 2) GTEST_SKIP() << "there is one processor";
  const auto segment = segment_of(2);
  HostControl a(segment, 0), b(segment, 1);
  processors.keep_to(0);
  EXPECT_FALSE(a.shares_processor(Asks::kCaller));
  processors.keep_to(1);
  EXPECT_FALSE(b.shares_processor(Asks::kCaller));
  processors.keep_to(0);
  EXPECT_FALSE(a.shares_processor(Asks::kCaller));
  EXPECT_TRUE(b.shares_processor(Asks::kCaller));  // it has come to a's
}

}  // namespace
}  // namespace hocket::control
