// A job as it is seen from outside: whom ranks wait for, what is counted, what metrics say.
#include "hocket/live.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "control/group.h"
#include "control/host.h"
#include "live/blame.h"
#include "live/desk.h"
#include "live/meter.h"
#include "live/sampler.h"
#include "os/process/process_exit.h"
#include "os/process/process_state.h"
#include "os/segment.h"

namespace hocket {
namespace {

using control::GroupControl;
using control::HostControl;

constexpr std::size_t kStripe = std::size_t{8} << 20;

// A host whose ranks are all of this process, in groups that say what is wanted. A resource.
class PretendedJob {
 public:
  explicit PretendedJob(int ranks) {
    const control::HostShape shape{.ranks = ranks, .stripe_bytes = kStripe};
    segment_ =
        std::make_shared<os::Segment>(os::Segment::create(HostControl::segment_bytes(shape)));
    HostControl::format(*segment_, shape);
    for (int rank = 0; rank < ranks; ++rank) {
      hosts_.push_back(std::make_unique<HostControl>(segment_, rank));
      live::lay_out_desk(*hosts_.back());
      hosts_.back()->arrive(rank);
    }
  }

  HostControl& host(int rank) { return *hosts_[static_cast<std::size_t>(rank)]; }
  const os::Segment& segment() const { return *segment_; }
  // Members by place; each sits at its desk.
  std::uint64_t add_group(const std::vector<int>& places, const std::string& name) {
    HostControl& first = host(places.front());
    const std::uint64_t block =
        first.allocate(GroupControl::bytes(static_cast<int>(places.size())), places);
    GroupControl::format(first.at(block), places);
    for (std::size_t i = 0; i < places.size(); ++i) {
      live::sit_down(host(places[i]), block, static_cast<int>(i), name);
    }
    groups_.push_back({block, places});
    return block;
  }
  // Has a member come to call `last` of the group, having finished `finished`.
  void put(std::size_t group, int member, std::uint64_t last, std::uint64_t finished) {
    const auto& [block, places] = groups_[group];
    HostControl& own = host(places[static_cast<std::size_t>(member)]);
    GroupControl control(own, own.at(block), member, places);
    control.record(last, last, {.kind = engine::Kind::kAllReduce, .count = 100 + last});
    control.finish(finished, true);
  }

 private:
  std::shared_ptr<os::Segment> segment_;
  std::vector<std::unique_ptr<HostControl>> hosts_;
  std::vector<std::pair<std::uint64_t, std::vector<int>>> groups_;
};

std::vector<int> first(int count) {
  std::vector<int> places(static_cast<std::size_t>(count));
  std::iota(places.begin(), places.end(), 0);
  return places;
}

int blamed(PretendedJob& job, int place, int still = -1) {
  const control::Onlooker onlooker({job.segment().data(), job.segment().size()});
  live::Sampler sampler(onlooker);
  sampler.look();
  return live::blamed_by(sampler.glance(), place, [still](int other) { return other == still; });
}

TEST(Blame, IsOfTheRankThatHasNotCome) {
  PretendedJob job(4);
  job.add_group(first(4), "world");
  for (const int rank : {0, 1, 3}) job.put(0, rank, 7, 6);
  job.put(0, 2, 6, 6);
  for (const int rank : {0, 1, 3}) EXPECT_EQ(blamed(job, rank), 2);
  EXPECT_EQ(blamed(job, 2), -1);
}

// Rank 0 waits for 1, which waits for 2 in another group, which has not come there.
TEST(Blame, FollowsAChainOverGroups) {
  PretendedJob job(3);
  job.add_group({0, 1}, "first");
  job.add_group({1, 2}, "second");
  job.put(0, 0, 1, 0);
  job.put(1, 0, 5, 4);
  job.put(1, 1, 4, 4);
  EXPECT_EQ(blamed(job, 0), 2);
  EXPECT_EQ(blamed(job, 1), 2);
}

TEST(Blame, OfACircleIsItsLowest) {
  PretendedJob job(3);
  job.add_group({1, 2}, "first");
  job.add_group({1, 2}, "second");
  job.put(0, 0, 1, 0);
  job.put(1, 1, 1, 0);
  EXPECT_EQ(blamed(job, 1), 1);
  EXPECT_EQ(blamed(job, 2), 1);
  EXPECT_EQ(blamed(job, 0), -1);
}

// All have come: who stands still is to blame, and without one nobody is.
TEST(Blame, IsOfWhoStandsStillWithinACall) {
  PretendedJob job(3);
  job.add_group(first(3), "world");
  for (int rank = 0; rank < 3; ++rank) job.put(0, rank, 9, 8);
  EXPECT_EQ(blamed(job, 0), -1);
  EXPECT_EQ(blamed(job, 0, 2), 2);
}

// A rank that is stopped within an earlier call, which others have left.
TEST(Blame, IsOfWhoIsLeftBehind) {
  PretendedJob job(3);
  job.add_group(first(3), "world");
  job.put(0, 0, 9, 8);
  job.put(0, 1, 8, 7);
  job.put(0, 2, 9, 8);
  EXPECT_EQ(blamed(job, 0), 1);
}

// What is told of a process may be asked for while it ends.
TEST(ProcessState, IsToldOfWhoEndsMeanwhile) {
  for (int round = 0; round < 300; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::pause();
      ::_exit(0);
    }
    const std::uint64_t start = os::process_start(child);
    std::atomic<bool> ended{false};
    std::thread asks([&] {
      while (!ended) os::process_state(child, start);
    });
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ended = true;
    asks.join();
    EXPECT_EQ(os::process_state(child, start).doing, os::ProcessState::Doing::kUnknown);
  }
}

TEST(Sampler, CountsCallsAndBytesBetweenLooks) {
  PretendedJob job(2);
  job.add_group(first(2), "world");
  job.put(0, 0, 3, 3);
  const control::Onlooker onlooker({job.segment().data(), job.segment().size()});
  live::Sampler sampler(onlooker);
  sampler.look();
  EXPECT_EQ(sampler.tally(0).calls, 0);
  for (std::uint64_t call = 4; call <= 6; ++call) job.put(0, 0, call, call);
  sampler.look();
  EXPECT_EQ(sampler.tally(0).calls, 3);
  EXPECT_EQ(sampler.tally(0).bytes, 104 + 105 + 106);  // of uint8
  // More than there are records of: as large as those.
  for (std::uint64_t call = 7; call <= 106; ++call) job.put(0, 0, call, call);
  sampler.look();
  EXPECT_EQ(sampler.tally(0).calls, 103);
  EXPECT_EQ(sampler.tally(1).calls, 0);
}

TEST(Metrics, SayWhatAMeterHasCounted) {
  setenv("HOCKET_METRICS", "count", 1);
  PretendedJob job(2);
  unsetenv("HOCKET_METRICS");
  job.add_group(first(2), "a \"name\"");
  for (int rank = 0; rank < 2; ++rank) {
    live::Meter meter(job.host(rank), "a \"name\"");
    ASSERT_TRUE(meter.is_on());
    static constexpr char kEngine[] = "shm";
    for (std::size_t i = 1; i <= 10; ++i) {
      meter.begin(engine::Kind::kAllReduce, kEngine, i * (1 + static_cast<std::size_t>(rank)));
      meter.end(i == 10);
    }
    meter.end(true);  // none is under way
  }
  JobView view = JobView::open(getpid());
  view.look();
  const std::string text = metrics_text(view.report(), MetricsForm::kOpenMetrics);
  const std::string labels = R"({call="all_reduce",group="a \"name\"",engine="shm"})";
  const auto has = [&](const std::string& line) {
    return text.find(line + "\n") != std::string::npos;
  };
  EXPECT_TRUE(has("hocket_call_bytes_total" + labels + " 135")) << text;
  EXPECT_TRUE(has("hocket_calls_failed_total" + labels + " 2")) << text;
  EXPECT_TRUE(has("hocket_call_duration_seconds_count" + labels + " 18")) << text;
}

TEST(Metrics, AreOffWhereNobodyWantsThem) {
  PretendedJob job(1);
  live::Meter meter(job.host(0), "world");
  EXPECT_FALSE(meter.is_on());
}

// How long it takes is printed, and not judged.
TEST(JobView, SeesAJobOf512Ranks) {
  constexpr int kRanks = 512;
  setenv("HOCKET_METRICS", "count", 1);
  PretendedJob job(kRanks);
  unsetenv("HOCKET_METRICS");
  job.add_group(first(kRanks), "world");
  for (int rank = 0; rank < kRanks; ++rank) {
    job.put(0, rank, rank == 77 ? 4 : 5, 4);
    live::Meter meter(job.host(rank), "world");
    static constexpr char kEngine[] = "shm";
    meter.begin(engine::Kind::kAllReduce, kEngine, 8);
    meter.end(false);
  }
  JobView view = JobView::open(getpid());
  const auto begin = std::chrono::steady_clock::now();
  view.look();
  const auto looked = std::chrono::steady_clock::now();
  const LiveJob seen = view.report({.processes = false});
  const std::string text = metrics_text(seen, MetricsForm::kPrometheus);
  const auto end = std::chrono::steady_clock::now();
  std::printf("512 ranks: a look takes %.2f ms, a scrape %.2f ms\n",
              std::chrono::duration<double, std::milli>(looked - begin).count(),
              std::chrono::duration<double, std::milli>(end - looked).count());
  ASSERT_EQ(seen.ranks.size(), static_cast<std::size_t>(kRanks));
  EXPECT_EQ(seen.blamed, std::vector{77});
  const auto held = std::ranges::count(seen.ranks, 77, &LiveRank::blocked_by);
  EXPECT_EQ(held, kRanks - 1);
  EXPECT_NE(text.find("hocket_holds_up_ranks{rank=\"77\"} 511\n"), std::string::npos);
  EXPECT_NE(text.find("_count{call=\"all_reduce\",group=\"world\",engine=\"shm\"} 512\n"),
            std::string::npos);
}

TEST(JobView, RefusesAProcessThatIsNoRank) {
  EXPECT_THROW(JobView::open(getpid()), InvalidArgument);
}

}  // namespace
}  // namespace hocket
