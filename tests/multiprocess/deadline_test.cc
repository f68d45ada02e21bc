// Ranks that stop or come late. At its deadline, a waiting rank learns which rank is missing, and
// what that one was last seen doing.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <thread>

#include "collectives.h"
#include "ranks.h"

namespace hocket::multiprocess {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Deadline, NamesAStoppedRankAndItsLastCall) {
  for (const char* engine : {"shm", "algorithm"}) {
    const auto ranks = run_job(
        {.size = 3, .engines = {engine}},
        [](Rank& rank) {
          World world = rank.join();
          auto& comm = world.communicator();
          std::vector<double> x(12);
          comm.all_reduce(x, {.op = ReduceOp::kMax});
          rank.mark(0);
          if (rank.rank() == 1) {
            rank.await(1, 1);
          } else {
            rank.await(2, 1);
            rank.attempt("call", [&] { comm.barrier({.deadline = milliseconds(300)}); });
            rank.mark(3);
            rank.attempt("later", [&] { comm.barrier(); });
          }
          // The stopped rank finds the communicator ended.
          if (rank.rank() == 1) rank.attempt("late", [&] { comm.barrier(); });
        },
        {},
        [](const Watcher& watcher) {
          watcher.await(0, 3);
          watcher.signal(1, SIGSTOP);
          watcher.mark(2);
          watcher.await(3, 2);
          watcher.mark(1);
          watcher.signal(1, SIGCONT);
        });
    for (const int i : {0, 2}) {
      const Result& rank = ranks[static_cast<std::size_t>(i)];
      EXPECT_EQ(rank.get("call"), "DeadlineExceeded");
      EXPECT_EQ(rank.get("call.missing"), "1");
      EXPECT_TRUE(contains(rank.get("call.message"), fmt::format("rank 1 (pid {})", ranks[1].pid)))
          << rank.get("call.message");
      EXPECT_TRUE(contains(rank.get("call.message"), "all_reduce #1 max float64[12]"))
          << rank.get("call.message");
      EXPECT_TRUE(contains(rank.get("call.message"), "barrier #2")) << rank.get("call.message");
      EXPECT_EQ(rank.get("later"), "DeadlineExceeded");
    }
    EXPECT_EQ(ranks[0].get("call.message"), ranks[2].get("call.message"));
    EXPECT_EQ(ranks[1].get("late"), "DeadlineExceeded");
  }
}

// Stopped within a call: the rank had come, so none is missing, but the call ends.
TEST(Deadline, EndsACallInWhoseMiddleARankStops) {
  const auto ranks = run_job(
      {.size = 2},
      [](Rank& rank) {
        World world = rank.join();
        auto& comm = world.communicator();
        comm.set_deadline(milliseconds(400));
        std::vector<float> x(3'000'000);
        rank.attempt("call", [&] {
          for (;;) {
            comm.all_reduce(x);
            rank.mark(0);
          }
        });
        rank.mark(1);
      },
      {},
      [](const Watcher& watcher) {
        watcher.await(0, 4);
        watcher.signal(1, SIGSTOP);
        watcher.await(1, 1);
        watcher.signal(1, SIGCONT);
      });
  EXPECT_EQ(ranks[0].get("call"), "DeadlineExceeded");
  EXPECT_EQ(ranks[1].get("call"), "DeadlineExceeded");
  EXPECT_EQ(ranks[0].get("call.message"), ranks[1].get("call.message"));
}

TEST(Deadline, OfTheCallAndOfTheCommunicatorCount) {
  for (const Collective& each : collectives()) {
    SCOPED_TRACE(each.name);
    run_job({.size = 2}, [&](Rank& rank) {
      World world = rank.join();
      auto by_call = world.communicator().duplicate();
      auto by_communicator = world.communicator().duplicate();
      by_communicator.set_deadline(milliseconds(150));
      rank.check(by_communicator.deadline() == milliseconds(150), "deadline() differs");
      Arrays arrays(2, 4);
      if (rank.rank() == 0) {
        // Root 1 never comes: everybody needs it.
        const Outcome first = rank.attempt(
            "call", [&] { each.run(by_call, arrays, 1, Duration(milliseconds(150))); });
        const Outcome second = rank.attempt("default", [&] {
          for (;;) each.run(by_communicator, arrays, 1, {});
        });
        // A send may complete before the other rank comes.
        rank.check(first.kind == "DeadlineExceeded" || first.ok(), "the call: " + first.message);
        if (!first.ok()) rank.check(first.missing == "1", "missing: " + first.missing);
        rank.check(second.kind == "DeadlineExceeded", "the default: " + second.message);
        rank.check(second.missing == "1", "missing: " + second.missing);
        rank.mark(0);
      } else {
        rank.await(0, 1);
      }
    });
  }
}

TEST(Deadline, LateButInTimeIsFine) {
  run_job({.size = 3}, [](Rank& rank) {
    World world = rank.join();
    for (int late = 0; late < 3; ++late) {
      if (rank.rank() == late) std::this_thread::sleep_for(milliseconds(250));
      const std::string wrong = wrong_results(world.communicator(), late, 3000);
      rank.check(wrong.empty(), wrong);
    }
  });
}

TEST(Deadline, OfMessagesNamesThePeer) {
  const auto ranks = run_job({.size = 3}, [](Rank& rank) {
    World world = rank.join();
    auto receives = world.communicator().duplicate();
    auto sends = world.communicator().duplicate();
    auto any = world.communicator().duplicate();
    if (rank.rank() == 0) {
      std::vector<float> x(7);
      std::vector<std::byte> large(1 << 20);
      rank.attempt("recv", [&] { receives.recv(x, 2, {.tag = 9, .deadline = milliseconds(150)}); });
      rank.attempt("send", [&] { sends.send(large, 1, {.deadline = milliseconds(150)}); });
      rank.attempt("any", [&] { any.recv(x, kAnySource, {.deadline = milliseconds(150)}); });
      rank.mark(0);
    } else {
      rank.await(0, 1);
    }
  });
  const Result& rank = ranks[0];
  EXPECT_EQ(rank.get("recv"), "DeadlineExceeded");
  EXPECT_EQ(rank.get("recv.missing"), "2");
  EXPECT_TRUE(contains(rank.get("recv.message"), "recv of float32[7] from rank 2 tag 9"))
      << rank.get("recv.message");
  EXPECT_EQ(rank.get("send"), "DeadlineExceeded");
  EXPECT_EQ(rank.get("send.missing"), "1");
  EXPECT_EQ(rank.get("any"), "DeadlineExceeded");
}

// Opposite blocking orders on two communicators end, and name each other.
TEST(Deadline, EndsOppositeBlockingOrders) {
  const auto ranks = run_job({.size = 2}, [](Rank& rank) {
    World world = rank.join();
    auto a = world.communicator().duplicate();
    auto b = world.communicator().duplicate();
    a.set_deadline(milliseconds(300));
    b.set_deadline(milliseconds(300));
    std::vector<float> x(10);
    rank.attempt("call", [&] { (rank.rank() == 0 ? a : b).all_reduce(x); });
    rank.mark(0);
    rank.await(0, 2);
  });
  EXPECT_EQ(ranks[0].get("call"), "DeadlineExceeded");
  EXPECT_EQ(ranks[1].get("call"), "DeadlineExceeded");
  EXPECT_EQ(ranks[0].get("call.missing"), "1");
  EXPECT_EQ(ranks[1].get("call.missing"), "0");
}

// An operator's time counts on the rank that runs it as on the others: none gets a result.
TEST(Deadline, CountsAnOperatorsTimeOnEveryRank) {
  struct Slow {
    const char* name;
    bool on[2];
  };
  for (const Slow& slow : {Slow{"all", {true, true}},
                           Slow{"the first", {true, false}},
                           Slow{"the last", {false, true}}}) {
    for (const bool is_async : {false, true}) {
      const auto ranks = run_job({.size = 2}, [&](Rank& rank) {
        World world = rank.join();
        auto& comm = world.communicator();
        const auto add = [&](double a, double b) {
          if (slow.on[rank.rank()]) std::this_thread::sleep_for(milliseconds(300));
          return a + b;
        };
        std::vector<double> x(2, 1.0);
        const OperatorOptions options{.deadline = milliseconds(120)};
        rank.attempt("call", [&] {
          if (is_async) {
            all_reduce_async(comm, x, x, operator_of<double>(add), options).wait();
          } else {
            all_reduce(comm, x, x, operator_of<double>(add), options);
          }
        });
        rank.attempt("later", [&] { comm.barrier(); });
      });
      for (const Result& rank : ranks) {
        EXPECT_EQ(rank.get("call"), "DeadlineExceeded") << slow.name << is_async;
        EXPECT_EQ(rank.get("later"), "DeadlineExceeded") << slow.name << is_async;
        EXPECT_EQ(rank.get("call.message"), ranks[0].get("call.message"));
      }
    }
  }
}

// Work has the deadline of its own call, even behind work with a longer one.
TEST(Deadline, OfWorkCountsFromItsStart) {
  const auto ranks = run_job({.size = 2}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    std::vector<float> x(4);
    std::vector<float> y(4);
    if (rank.rank() == 0) {
      Work first = comm.all_reduce_async(x, {.deadline = seconds(100)});
      Work second = comm.all_reduce_async(y, {.deadline = milliseconds(200)});
      rank.check(!first.wait_for(milliseconds(20)), "a call ended without the other rank");
      rank.attempt("second", [&] { second.wait(); });
      rank.attempt("first", [&] { first.wait(); });
      rank.mark(0);
    } else {
      rank.await(0, 1);
    }
  });
  EXPECT_EQ(ranks[0].get("second"), "DeadlineExceeded");
  EXPECT_EQ(ranks[0].get("second.missing"), "1");
  EXPECT_EQ(ranks[0].get("first"), "DeadlineExceeded");
}

}  // namespace
}  // namespace hocket::multiprocess
