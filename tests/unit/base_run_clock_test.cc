// The time that a process could run, by the beats of a watch.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "foundation/base/beats.h"
#include "foundation/base/deadline.h"
#include "hocket/run_clock.h"

namespace hocket::base {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kGapMs = Beats::kGap / kMs;

struct Case {
  const char* name;
  std::vector<std::int64_t> beats;  // ms
  std::int64_t now;                 // ms
  std::int64_t time;                // ms
};

TEST(Beats, LeaveOutWhatIsFarLongerThanTheirPause) {
  const std::vector<Case> cases{
      {"nobody beats", {}, 5000, 5000},
      {"just after a beat", {1000}, 1010, 1010},
      {"regular beats", {1000, 1050, 1100}, 1120, 1120},
      {"a busy machine", {1000, 1000 + kGapMs}, 1000 + kGapMs, 1000 + kGapMs},
      {"stopped, and the watch has had no turn so far", {1000}, 9000, 1000 + kGapMs},
      {"stopped, and the watch has had its turn", {1000, 9000}, 9000, 1000 + kGapMs},
      {"a while after", {1000, 9000, 9050}, 9070, 1070 + kGapMs},
      {"stopped twice", {1000, 9000, 20'000}, 20'010, 1010 + 2 * kGapMs},
      {"stopped again at once", {1000, 9000}, 20'000, 1000 + 2 * kGapMs},
  };
  for (const Case& each : cases) {
    Beats beats;
    for (const std::int64_t at : each.beats) beats.beat(at * kMs);
    EXPECT_EQ(beats.time([&] { return each.now * kMs; }), each.time * kMs) << each.name;
  }
}

TEST(Beats, CountAllOnceNobodyBeats) {
  Beats beats;
  beats.beat(1000 * kMs);
  beats.beat(9000 * kMs);
  beats.end();
  const std::int64_t left_out = (8000 - kGapMs) * kMs;
  EXPECT_EQ(beats.time([] { return 50'000 * kMs; }), 50'000 * kMs - left_out);
  beats.beat(60'000 * kMs);
  EXPECT_EQ(beats.time([] { return 60'010 * kMs; }), 60'010 * kMs - left_out);
}

// The quicker clock is behind, which the deadline makes up for.
TEST(Deadline, InAboutIsNeverEarly) {
  constexpr std::chrono::seconds kAfter{5};
  for (int i = 0; i < 1000; ++i) {
    const auto before = RunClock::now();
    const Deadline about = Deadline::in_about(kAfter);
    EXPECT_GE(about.when(), before + kAfter);
    EXPECT_LE(about.when(), RunClock::now() + kAfter + std::chrono::nanoseconds(kCoarse));
  }
  EXPECT_TRUE(Deadline::in_about(kForever).is_never());
}

// Both sleeping and working count as running.
TEST(RunClock, CountsWhileTheProcessRuns) {
  const auto steady = std::chrono::steady_clock::now();
  const RunClock::Watch watch;
  const RunClock::Watch another;
  const auto begun = RunClock::now();
  const auto last = begun + 3 * std::chrono::nanoseconds(Beats::kGap);
  while (RunClock::now() < last) std::this_thread::yield();
  EXPECT_GE(std::chrono::steady_clock::now() - steady, last - begun);
}

// A child has no thread that beats, but its time must go on.
TEST(RunClock, GoesOnInAChildOfAFork) {
  const RunClock::Watch watch;
  const pid_t child = ::fork();
  if (child == 0) {
    const auto last = RunClock::now() + 2 * std::chrono::nanoseconds(Beats::kGap);
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (RunClock::now() < last && std::chrono::steady_clock::now() < give_up) {
      std::this_thread::yield();
    }
    const bool went_on = RunClock::now() >= last;
    {
      const RunClock::Watch its_own;
    }
    ::_exit(went_on ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

bool has_clock_thread() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name == "hocket-clock") return true;
  }
  return false;
}

// Sets the size of the stacks of new threads, and returns what it was.
std::size_t set_stack(std::size_t bytes) {
  pthread_attr_t attributes;
  EXPECT_EQ(pthread_getattr_default_np(&attributes), 0);
  std::size_t before = 0;
  pthread_attr_getstacksize(&attributes, &before);
  pthread_attr_setstacksize(&attributes, bytes);
  EXPECT_EQ(pthread_setattr_default_np(&attributes), 0);
  pthread_attr_destroy(&attributes);
  return before;
}

// A thread that may get too small a stack is not started.
TEST(RunClock, GetsItsThreadWithTheNextWatchIfItWasRefused) {
  const std::size_t bytes = set_stack(std::size_t{64} << 10);
  std::optional<RunClock::Watch> refused(std::in_place);
  set_stack(bytes);
  EXPECT_FALSE(has_clock_thread());
  std::optional<RunClock::Watch> first(std::in_place), second(std::in_place);
  EXPECT_TRUE(has_clock_thread());
  first.reset();
  refused.reset();
  EXPECT_TRUE(has_clock_thread());
  second.reset();
  EXPECT_FALSE(has_clock_thread());
}

}  // namespace
}  // namespace hocket::base
