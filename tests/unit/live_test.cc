// A job seen from outside: the ranks that others wait for, the counts, and the metrics.
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

#include "foundation/os/process/process_exit.h"
#include "foundation/os/process/process_state.h"
#include "foundation/os/segment.h"
#include "foundation/os/segment_holders.h"
#include "membership/control/group.h"
#include "membership/control/host/host.h"
#include "monitoring/live/blame.h"
#include "monitoring/live/meter.h"
#include "monitoring/live/rank_process.h"
#include "monitoring/live/sampler.h"
#include "monitoring/live/status_board.h"

namespace hocket {
namespace {

using control::GroupControl;
using control::HostControl;

constexpr std::size_t kStripe = std::size_t{8} << 20;

// A host whose ranks are all in this process. Tests choose its groups and their contents. A
// resource.
class PretendedJob {
 public:
  explicit PretendedJob(int ranks) {
    const control::HostShape shape{.ranks = ranks, .stripe_bytes = kStripe};
    segment_ =
        std::make_shared<os::Segment>(os::Segment::create(HostControl::segment_bytes(shape)));
    HostControl::format(*segment_, shape);
    for (int rank = 0; rank < ranks; ++rank) {
      hosts_.push_back(std::make_unique<HostControl>(segment_, rank));
      live::lay_out_board(hosts_.back()->memory);
      hosts_.back()->arrive(rank);
    }
  }

  HostControl& host(int rank) { return *hosts_[static_cast<std::size_t>(rank)]; }
  const os::Segment& segment() const { return *segment_; }
  // Adds a group of the ranks at these places; each shows it on its board.
  std::uint64_t add_group(const std::vector<int>& places, const std::string& name) {
    HostControl& first = host(places.front());
    const std::uint64_t block =
        first.memory.allocate(GroupControl::bytes(static_cast<int>(places.size())), places);
    GroupControl::format(first.memory.at(block), places);
    for (std::size_t i = 0; i < places.size(); ++i) {
      live::show_group(host(places[i]).memory, block, static_cast<int>(i), name);
    }
    groups_.push_back({block, places});
    return block;
  }
  // Has a member come to call `last` of the group, having finished `finished`.
  void put(std::size_t group, int member, std::uint64_t last, std::uint64_t finished) {
    const auto& [block, places] = groups_[group];
    HostControl& own = host(places[static_cast<std::size_t>(member)]);
    GroupControl control(own, own.memory.at(block), member, places);
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

// All have come: a rank that stands still is to blame, and without one no rank is.
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

// The state of a process may be requested while the process ends.
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
    live::Meter meter(job.host(rank).memory, "a \"name\"");
    ASSERT_TRUE(meter.is_on());
    static constexpr char kEngine[] = "shm";
    for (std::size_t i = 1; i <= 10; ++i) {
      live::Counted call = meter.begin({.kind = engine::Kind::kAllReduce,
                                        .engine = kEngine,
                                        .bytes = i * (1 + static_cast<std::size_t>(rank))});
      call.end(i == 10);
      call.end(true);  // it has ended
    }
    // Two overlap; a call without `end` is not counted.
    live::Counted sent = meter.begin({.kind = engine::Kind::kSend, .bytes = 70});
    live::Counted received = meter.begin({.kind = engine::Kind::kRecv, .bytes = 1000});
    [[maybe_unused]] const live::Counted dropped =
        meter.begin({.kind = engine::Kind::kRecv, .bytes = 5000});
    received.set_bytes(9);
    received.end(false);
    sent.end(false);
    meter.begin({.kind = engine::Kind::kSend, .bytes = 300}).end(true);
    static constexpr char kGpuEngine[] = "peer";
    const auto put = [&](engine::Kind kind, std::size_t bytes, bool fails) {
      meter.begin({.kind = kind, .engine = kGpuEngine, .bytes = bytes, .timed = LiveTimed::kLaunch})
          .end(fails);
    };
    meter
        .begin({.kind = engine::Kind::kAllReduce,
                .engine = kGpuEngine,
                .bytes = 4096,
                .timed = LiveTimed::kOnStream})
        .end_after(std::chrono::microseconds(250));
    put(engine::Kind::kAllReduce, 4096, false);
    put(engine::Kind::kSend, 512, rank == 1);
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
  const std::string sent = R"({direction="sent",group="a \"name\""})";
  const std::string received = R"({direction="received",group="a \"name\""})";
  EXPECT_TRUE(has("hocket_message_duration_seconds_count" + sent + " 2")) << text;
  EXPECT_TRUE(has("hocket_message_bytes_total" + sent + " 140")) << text;
  EXPECT_TRUE(has("hocket_messages_failed_total" + sent + " 2")) << text;
  EXPECT_TRUE(has("hocket_message_duration_seconds_count" + received + " 2")) << text;
  EXPECT_TRUE(has("hocket_message_bytes_total" + received + " 18")) << text;
  EXPECT_TRUE(has("hocket_messages_failed_total" + received + " 0")) << text;
  const std::string on_gpu = R"({call="all_reduce",group="a \"name\"",engine="peer"})";
  const std::string gpu_send = R"({call="send",group="a \"name\"",engine="peer"})";
  EXPECT_TRUE(has("hocket_gpu_launch_duration_seconds_count" + on_gpu + " 2")) << text;
  EXPECT_TRUE(has("hocket_gpu_call_bytes_total" + on_gpu + " 8192")) << text;
  EXPECT_TRUE(has("hocket_gpu_call_duration_seconds_count" + on_gpu + " 2")) << text;
  EXPECT_TRUE(has("hocket_gpu_call_duration_seconds_sum" + on_gpu + " 0.0005")) << text;
  EXPECT_TRUE(has("hocket_gpu_call_bytes_total" + gpu_send + " 512")) << text;
  EXPECT_TRUE(has("hocket_gpu_calls_failed_total" + gpu_send + " 1")) << text;
  EXPECT_EQ(text.find("hocket_store_clients"), std::string::npos) << text;
  LiveJob with_store = view.report();
  with_store.store_clients = 3;
  EXPECT_NE(metrics_text(with_store, MetricsForm::kOpenMetrics).find("\nhocket_store_clients 3\n"),
            std::string::npos);
}

TEST(Metrics, AreOffWhereNobodyWantsThem) {
  PretendedJob job(1);
  live::Meter meter(job.host(0).memory, "world");
  EXPECT_FALSE(meter.is_on());
}

// The time is printed, and not judged.
TEST(JobView, SeesAJobOf512Ranks) {
  constexpr int kRanks = 512;
  setenv("HOCKET_METRICS", "count", 1);
  PretendedJob job(kRanks);
  unsetenv("HOCKET_METRICS");
  job.add_group(first(kRanks), "world");
  for (int rank = 0; rank < kRanks; ++rank) {
    job.put(0, rank, rank == 77 ? 4 : 5, 4);
    live::Meter meter(job.host(rank).memory, "world");
    static constexpr char kEngine[] = "shm";
    for (const auto kind : {engine::Kind::kAllReduce, engine::Kind::kBroadcast}) {
      meter.begin({.kind = kind, .engine = kEngine, .bytes = 8}).end(false);
      meter.begin({.kind = kind, .engine = kEngine, .bytes = 8, .timed = LiveTimed::kLaunch})
          .end(false);
    }
    for (const auto kind : {engine::Kind::kSend, engine::Kind::kRecv}) {
      meter.begin({.kind = kind, .bytes = 8}).end(false);
      meter.begin({.kind = kind, .engine = kEngine, .bytes = 8, .timed = LiveTimed::kLaunch})
          .end(false);
    }
  }
  JobView view = JobView::open(getpid());
  using Milliseconds = std::chrono::duration<double, std::milli>;
  Milliseconds looks{1e9}, scrapes{1e9};  // the shortest of some
  LiveJob seen;
  std::string text;
  for (int i = 0; i < 10; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    view.look();
    const auto looked = std::chrono::steady_clock::now();
    seen = view.report({.processes = false});
    text = metrics_text(seen, MetricsForm::kPrometheus);
    looks = std::min<Milliseconds>(looks, looked - begin);
    scrapes = std::min<Milliseconds>(scrapes, std::chrono::steady_clock::now() - looked);
  }
  std::printf(
      "512 ranks: a look takes %.2f ms, a scrape %.2f ms\n", looks.count(), scrapes.count());
  ASSERT_EQ(seen.ranks.size(), static_cast<std::size_t>(kRanks));
  EXPECT_EQ(seen.blamed, std::vector{77});
  const auto held = std::ranges::count(seen.ranks, 77, &LiveRank::blocked_by);
  EXPECT_EQ(held, kRanks - 1);
  EXPECT_NE(text.find("hocket_holds_up_ranks{rank=\"77\"} 511\n"), std::string::npos);
  EXPECT_NE(text.find("_count{call=\"all_reduce\",group=\"world\",engine=\"shm\"} 512\n"),
            std::string::npos);
}

// Pids of different namespaces may be equal.
TEST(RankProcess, IsFoundByItsPidWithinItsNamespace) {
  const std::vector<os::SegmentHolder> holders{{.pid = 501, .own_pid = 7, .own_space = 91},
                                               {.pid = 502, .own_pid = 7, .own_space = 92},
                                               {.pid = 503, .own_pid = 8, .own_space = 92},
                                               {.pid = 504, .own_pid = 9, .own_space = 0}};
  struct Case {
    int pid;
    std::uint64_t space;
    int found;  // 0: none
  };
  for (const Case each : {Case{7, 91, 501},
                          Case{7, 92, 502},
                          Case{7, 93, 0},
                          Case{8, 92, 503},
                          Case{8, 91, 0},
                          Case{7, 0, 501},  // the rank's namespace is unknown
                          Case{9, 91, 504},
                          Case{9, 0, 504},
                          Case{6, 91, 0}}) {
    const control::SeenRank rank{.pid = each.pid, .pid_space = each.space};
    const os::SegmentHolder* const found = live::find_process(rank, holders);
    EXPECT_EQ(found == nullptr ? 0 : found->pid, each.found) << each.pid << " in " << each.space;
  }
}

TEST(RankProcess, HasTheNamespaceThatItKnowsItself) {
  PretendedJob job(1);
  const auto held = os::segment_holders(::getpid());
  ASSERT_FALSE(held.empty());
  for (const os::SegmentHolder& each : held) {
    EXPECT_EQ(each.own_pid, ::getpid());
    EXPECT_EQ(each.own_space, os::process_space());
  }
}

TEST(JobView, RefusesAProcessThatIsNoRank) {
  EXPECT_THROW(JobView::open(getpid()), InvalidArgument);
}

}  // namespace
}  // namespace hocket
