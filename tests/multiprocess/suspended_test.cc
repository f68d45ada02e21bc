// A whole job that is stopped for longer than its deadlines goes on as if nothing had happened.
// Examples: a laptop is closed, or a batch system suspends the job. See include/hocket/run_clock.h.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <functional>
#include <thread>

#include "collectives.h"
#include "pretended_hosts.h"
#include "ranks.h"

namespace hocket::multiprocess {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kDeadline{500};
constexpr milliseconds kStopped{1200};

// Flags of the board.
constexpr int kWaiting = 0;  // ranks that are in the wait
constexpr int kResumed = 1;  // cases whose stop is over
constexpr int kMoving = 2;   // calls of the loops

void stop_all(const Watcher& watcher, int ranks, milliseconds time) {
  for (int i = 0; i < ranks; ++i) watcher.signal(i, SIGSTOP);
  std::this_thread::sleep_for(time);
  for (int i = 0; i < ranks; ++i) watcher.signal(i, SIGCONT);
}

// Rank 0 waits in one of these ways until rank 1, which was stopped like it, does its part.
struct Wait {
  const char* name;
  std::function<void(Communicator& comm, bool waits)> run;
};

const std::vector<Wait>& waits() {
  static const std::vector<Wait> all{
      {"barrier", [](Communicator& comm, bool) { comm.barrier(); }},
      {"all_reduce",
       [](Communicator& comm, bool) {
         std::vector<float> x(1000, 1.0F);
         comm.all_reduce(x);
       }},
      {"recv",
       [](Communicator& comm, bool waits) {
         int x = 7;
         if (waits) comm.recv(scalar(x), 1);
         if (!waits) comm.send(scalar(x), 0);
       }},
      {"recv from any",
       [](Communicator& comm, bool waits) {
         int x = 7;
         if (waits) comm.recv(scalar(x), kAnySource);
         if (!waits) comm.send(scalar(x), 0);
       }},
      {"async, waited for",
       [](Communicator& comm, bool) {
         std::vector<float> x(1000, 1.0F);
         comm.all_reduce_async(x).wait();
       }},
      {"async, while the program sleeps",
       [](Communicator& comm, bool waits) {
         std::vector<float> x(1000, 1.0F);
         Work work = comm.all_reduce_async(x);
         if (waits) std::this_thread::sleep_for(milliseconds(100));
         work.wait();
       }},
      {"split", [](Communicator& comm, bool) { comm.split({.color = 0}); }},
  };
  return all;
}

TEST(Suspended, NoWaitCountsTheTimeOfTheStop) {
  const auto ranks = run_job(
      {.size = 2},
      [](Rank& rank) {
        World world = rank.join();
        int done = 0;
        for (const Wait& wait : waits()) {
          auto comm = world.communicator().duplicate();
          comm.set_deadline(kDeadline);
          ++done;
          const bool is_first = rank.rank() == 0;
          // Rank 0 is in the wait, or about to be; rank 1 begins when all have been resumed.
          rank.mark(kWaiting);
          if (!is_first) rank.await(kResumed, done);
          const Outcome outcome = outcome_of([&] { wait.run(comm, is_first); });
          rank.check(outcome.ok(), fmt::format("{}: {}", wait.name, outcome.message));
        }
      },
      {},
      [](const Watcher& watcher) {
        for (int i = 1; i <= static_cast<int>(waits().size()); ++i) {
          if (!watcher.await(kWaiting, 2 * i)) return;
          stop_all(watcher, 2, kStopped);
          watcher.mark(kResumed);
        }
      });
}

// The stop may also happen inside a call, while no thread looks at a clock.
TEST(Suspended, NoStepCountsTheTimeOfTheStop) {
  constexpr int kStops = 4;
  run_job(
      {.size = 2},
      [](Rank& rank) {
        World world = rank.join();
        auto& comm = world.communicator();
        comm.set_deadline(kDeadline);
        std::vector<float> x(3'000'000, 1.0F);
        std::vector<int> is_over(1);
        const Outcome outcome = outcome_of([&] {
          while (is_over[0] == 0) {
            comm.all_reduce(x);
            rank.mark(kMoving);
            is_over[0] = rank.flag(kResumed) == kStops ? 1 : 0;
            comm.all_reduce(is_over);
          }
        });
        rank.check(outcome.ok(), outcome.message);
      },
      {},
      [](const Watcher& watcher) {
        for (int i = 1; i <= kStops; ++i) {
          watcher.await(kMoving, watcher.flag(kMoving) + 4);
          stop_all(watcher, 2, kStopped);
          watcher.mark(kResumed);
        }
      });
}

// A user's operator counts its own time, without the time of the stop.
TEST(Suspended, NoOperatorCountsTheTimeOfTheStop) {
  run_job(
      {.size = 2},
      [](Rank& rank) {
        World world = rank.join();
        auto& comm = world.communicator();
        comm.set_deadline(kDeadline);
        std::vector<double> x(4, 1.0);
        const auto add = [&rank](double a, double b) {
          rank.mark(kWaiting);
          rank.await(kResumed, 1);
          return a + b;
        };
        const Outcome outcome =
            outcome_of([&] { all_reduce(comm, x, x, operator_of<double>(add)); });
        rank.check(outcome.ok(), outcome.message);
        rank.check(x[3] == 2.0, "a wrong sum");
      },
      {},
      [](const Watcher& watcher) {
        watcher.await(kWaiting, 1);
        stop_all(watcher, 2, kStopped);
        watcher.mark(kResumed);
      });
}

class SuspendedHosts : public PretendedHosts {};

// Hosts that were all suspended have not been silent.
TEST_F(SuspendedHosts, DoNotTakeEachOtherForGone) {
  constexpr milliseconds kPastAllPatience{3600};
  run_job(
      {.size = 4, .environment = {{"HOCKET_SILENCE", "0.5"}}},
      [](Rank& rank) {
        World world = join(rank, in_pairs);
        auto& comm = world.communicator();
        comm.set_deadline(milliseconds(1500));
        rank.mark(kWaiting);
        if (rank.rank() == 3) rank.await(kResumed, 1);
        for (int i = 0; i < 3; ++i) {
          const Outcome outcome = outcome_of([&] { comm.barrier(); });
          rank.check(outcome.ok(), outcome.message);
        }
      },
      {},
      [](const Watcher& watcher) {
        watcher.await(kWaiting, 4);
        stop_all(watcher, 4, kPastAllPatience);
        watcher.mark(kResumed);
      });
}

}  // namespace
}  // namespace hocket::multiprocess
