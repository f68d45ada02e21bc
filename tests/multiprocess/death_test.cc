// Ranks that die: every survivor hears which one, whatever it was doing.
#include <fmt/format.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <thread>

#include "collectives.h"
#include "core_file.h"
#include "ranks.h"

namespace hocket::multiprocess {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

enum class Manner { kKill, kAbort, kSegfault, kExit };

[[noreturn]] void die(Manner manner) {
  switch (manner) {
    case Manner::kAbort:
      signal(SIGABRT, SIG_DFL);
      abort();
    case Manner::kSegfault:
      signal(SIGSEGV, SIG_DFL);
      raise(SIGSEGV);
      break;
    case Manner::kExit:
      _exit(7);
    case Manner::kKill:
      break;
  }
  for (;;) raise(SIGKILL);
}

// Calls `action` until it throws.
Outcome until_it_throws(const Rank& rank,
                        const std::string& key,
                        const std::function<void()>& action) {
  return rank.attempt(key, [&] {
    for (;;) action();
  });
}

void expect_death(const Outcome& outcome, const Rank& rank, int victim, const std::string& where) {
  rank.check(outcome.kind == "PeerDied" && outcome.peer == victim,
             fmt::format("{}: expected PeerDied of rank {}, got {} of rank {}: {}",
                         where,
                         victim,
                         outcome.kind,
                         outcome.peer,
                         outcome.message));
}

// All survivors named the victim and its process.
void expect_named(const std::vector<Result>& ranks, int victim, const std::string& key) {
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (static_cast<int>(i) == victim) continue;
    const Result& rank = ranks[i];
    EXPECT_EQ(rank.get(key), "PeerDied") << "rank " << i << ": " << rank.get(key + ".message");
    EXPECT_EQ(rank.number(key + ".peer"), victim) << rank.get(key + ".message");
    EXPECT_EQ(rank.number(key + ".pid"), ranks[static_cast<std::size_t>(victim)].pid);
    const std::string expected =
        fmt::format("rank {} (pid {})", victim, ranks[static_cast<std::size_t>(victim)].pid);
    EXPECT_NE(rank.get(key + ".message").find(expected), std::string::npos)
        << rank.get(key + ".message");
  }
}

// After a death: the world is of no use, a group of the living is.
void expect_the_living_go_on(const Rank& rank, World& world, Communicator& living, int victim) {
  Arrays arrays(rank.size(), 5);
  for (const char* name : {"barrier", "all_reduce", "broadcast"}) {
    const Outcome later =
        outcome_of([&] { collective(name).run(world.communicator(), arrays, 0, std::nullopt); });
    expect_death(later, rank, victim, fmt::format("a later {}", name));
  }
  expect_death(outcome_of([&] {
                 std::vector<int> x{1};
                 world.communicator().send(x, victim);
               }),
               rank,
               victim,
               "a later send");
  rank.stage("the living");
  for (int round = 0; round < 5; ++round) {
    const std::string wrong = wrong_results(living, round, 700);
    rank.check(wrong.empty(), "among the living: " + wrong);
  }
  if (living.size() > 1) {
    std::vector<int> out{rank.rank()};
    std::vector<int> in(1);
    const int next = (living.rank() + 1) % living.size();
    const int before = (living.rank() + living.size() - 1) % living.size();
    living.send_recv(out, next, in, before);
    rank.check(in[0] == living.world_ranks()[static_cast<std::size_t>(before)],
               "a message among the living is wrong");
    auto deeper = living.split({.color = 0});
    const std::string wrong = wrong_results(deeper, 9, 3);
    rank.check(wrong.empty(), "in a group made after the death: " + wrong);
  }
}

Communicator group_of_living(World& world, int victim) {
  std::vector<int> living;
  for (int i = 0; i < world.size(); ++i) {
    if (i != victim) living.push_back(i);
  }
  return world.new_group(living);
}

// --- One collective -----------------------------------------------------------------------------

class Collectives : public testing::TestWithParam<std::string> {};

void run_blocked(
    const std::string& name, std::size_t share, int victim, Manner manner, JobOptions options) {
  SCOPED_TRACE(fmt::format("{} of {} floats, rank {} never comes", name, share, victim));
  const auto ranks =
      run_job(options,
              [&](Rank& rank) {
                World world = rank.join();
                Communicator living = group_of_living(world, victim);
                Arrays arrays(rank.size(), share);
                collective(name).run(world.communicator(), arrays, 0, std::nullopt);
                rank.mark(0);
                if (rank.rank() == victim) {
                  rank.await(0, rank.size());
                  std::this_thread::sleep_for(milliseconds(5));
                  die(manner);
                }
                const Outcome first = until_it_throws(rank, "call", [&] {
                  collective(name).run(world.communicator(), arrays, 0, std::nullopt);
                });
                expect_death(first, rank, victim, name);
                expect_the_living_go_on(rank, world, living, victim);
              },
              {victim});
  expect_named(ranks, victim, "call");
}

TEST_P(Collectives, WaitForARankThatIsKilledInstead) {
  run_blocked(GetParam(), 2, 1, Manner::kKill, {.size = 3});
  run_blocked(GetParam(), 40'000, 0, Manner::kKill, {.size = 3});
}

TEST_P(Collectives, OfTheAlgorithmEngineWaitForARankThatIsKilledInstead) {
  run_blocked(GetParam(), 40'000, 1, Manner::kKill, {.size = 3, .engines = {"algorithm"}});
}

TEST_P(Collectives, LoopWhileARankIsKilled) {
  for (const std::size_t share : {3, 100'000}) {
    const int victim = share == 3 ? 2 : 0;
    SCOPED_TRACE(fmt::format("{} of {} floats", GetParam(), share));
    const auto ranks = run_job(
        {.size = 3},
        [&](Rank& rank) {
          World world = rank.join();
          Communicator living = group_of_living(world, victim);
          Arrays arrays(rank.size(), share);
          int calls = 0;
          const Outcome first = until_it_throws(rank, "call", [&] {
            collective(GetParam()).run(world.communicator(), arrays, calls % 3, std::nullopt);
            if (++calls == 4) rank.mark(0);
          });
          expect_death(first, rank, victim, GetParam());
          expect_the_living_go_on(rank, world, living, victim);
        },
        {victim},
        [&](const Watcher& watcher) {
          watcher.await(0, 3);
          std::this_thread::sleep_for(milliseconds(3));
          watcher.signal(victim, SIGKILL);
        });
    expect_named(ranks, victim, "call");
  }
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Collective& each : collectives()) all.emplace_back(each.name);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Death, Collectives, testing::ValuesIn(names()), [](const auto& each) {
  return each.param;
});

// --- How it dies, and what the others do --------------------------------------------------------

TEST(Death, ByAnyCauseIsNoticed) {
  for (const Manner manner : {Manner::kAbort, Manner::kSegfault, Manner::kExit}) {
    run_blocked("all_reduce", 10, 1, manner, {.size = 2});
    run_blocked("barrier", 10, 2, manner, {.size = 4});
  }
}

TEST(Death, WithMuchMemoryIsNoticed) {
  const auto ranks = run_job({.size = 2},
                             [](Rank& rank) {
                               World world = rank.join();
                               if (rank.rank() == 1) {
                                 const std::size_t bytes = std::size_t{512} << 20;
                                 std::vector<char> much(bytes);
                                 for (std::size_t i = 0; i < bytes; i += 4096) much[i] = 1;
                                 world.communicator().barrier();
                                 die(Manner::kKill);
                               }
                               world.communicator().barrier();
                               rank.attempt("call", [&] { world.communicator().barrier(); });
                             },
                             {1});
  expect_named(ranks, 1, "call");
}

// The kernel tells of its end only when the file has been written.
TEST(Death, IsNoticedWhileACoreFileIsWritten) {
  if (core_pattern() != "core") GTEST_SKIP() << "core dumps go to " << core_pattern();
  char folder[] = "/tmp/hocket-core-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  if (!HeldFolder(folder).is_held()) GTEST_SKIP() << "needs root, to hold up the core file";
  const int victim = 1;
  std::vector<gid_t> groups(2000);
  std::iota(groups.begin(), groups.end(), gid_t{1'000'000});
  const auto ranks = run_job(
      {.size = 3},
      [&](Rank& rank) {
        World world = rank.join();
        Communicator& comm = world.communicator();
        std::vector<int> pid{static_cast<int>(getpid())};
        comm.broadcast(pid, {.root = victim});
        rank.check(chdir(folder) == 0, "the folder for the core file");
        const std::vector<int> others{0, 2};
        Communicator apart = comm.new_group(others);
        if (rank.rank() == victim) {
          rank.check(allow_core_files(), "core files are not allowed");
          // The list of groups is the first long line of /proc/PID/status.
          rank.check(setgroups(groups.size(), groups.data()) == 0, "groups are refused");
          rank.await(0, 1);
          die(Manner::kSegfault);
        }
        std::optional<HeldFolder> held;
        if (rank.rank() == 0) {
          held.emplace(folder);
          rank.check(held->is_held(), "the core file is not held up");
          rank.mark(0);
          expect_death(rank.attempt("recv", [&] { comm.recv(pid, victim); }), rank, victim, "recv");
        }
        rank.await(1, rank.rank() == 0 ? 0 : 1);
        rank.mark(1);
        expect_death(until_it_throws(rank, "call", [&] { comm.barrier(); }), rank, victim, "call");
        rank.check(dumps_core(pid[0]), "it was known only after the core file had been written");
        Communicator next = comm.rebuild();
        rank.check(next.size() == 2, "the one that dumps core goes on");
        const std::string wrong = wrong_results(next, 1, 700);
        rank.check(wrong.empty(), wrong);
        apart.barrier();
      },
      {victim});
  EXPECT_EQ(WTERMSIG(ranks[victim].status), SIGSEGV);
  std::filesystem::remove_all(folder);
}

TEST(Death, FailsAllWorkUnderWay) {
  const int victim = 1;
  const auto ranks = run_job(
      {.size = 3},
      [&](Rank& rank) {
        World world = rank.join();
        auto& comm = world.communicator();
        comm.barrier();
        rank.mark(0);
        if (rank.rank() == victim) {
          rank.await(0, 3);
          rank.await(1, 2);
          die(Manner::kKill);
        }
        std::vector<Arrays> arrays(8, Arrays(3, 1000));
        std::vector<Work> works;
        for (unsigned i = 0; i < arrays.size(); ++i) {
          works.push_back(start_collective(comm, arrays[i], i));
        }
        std::vector<int> message(100);
        works.push_back(comm.recv_async(message, victim, {.tag = 5}));
        rank.mark(1);
        // From the back, so that the earlier ones fail unseen.
        expect_death(rank.attempt("last", [&] { works.back().wait(); }), rank, victim, "last");
        // A small call in which the victim's part is not needed may have ended well.
        for (Work& work : works) {
          const Outcome outcome = outcome_of([&] { work.wait(); });
          if (!outcome.ok()) expect_death(outcome, rank, victim, "a work");
          rank.check(work.test(), "a failed work is not done");
        }
        rank.attempt("call", [&] { comm.all_reduce_async(arrays[0].in_share()).wait(); });
      },
      {victim});
  expect_named(ranks, victim, "last");
  expect_named(ranks, victim, "call");
}

// The progress thread alone moves the work: no thread waits for it.
TEST(Death, EndsWorkThatNobodyWaitsFor) {
  run_job({.size = 2},
          [](Rank& rank) {
            World world = rank.join();
            world.communicator().barrier();
            if (rank.rank() == 1) {
              rank.await(0, 1);
              die(Manner::kKill);
            }
            std::vector<float> x(10);
            Work work = world.communicator().all_reduce_async(x);
            std::atomic<bool> done{false};
            work.on_done([&] { done = true; });
            rank.mark(0);
            while (!done) std::this_thread::sleep_for(milliseconds(1));
            const auto error = work.error();
            rank.check(error && error->code == ErrorCode::kPeerDied && error->peer == 1,
                       "the work's error is not the death of rank 1");
          },
          {1});
}

TEST(Death, FailsReceiveAndSend) {
  const int victim = 1;
  for (const bool receives : {true, false}) {
    const auto ranks =
        run_job({.size = 3},
                [&](Rank& rank) {
                  World world = rank.join();
                  Communicator living = group_of_living(world, victim);
                  auto& comm = world.communicator();
                  comm.barrier();
                  if (rank.rank() == victim) {
                    rank.await(0, 2);
                    std::this_thread::sleep_for(milliseconds(5));
                    die(Manner::kKill);
                  }
                  rank.mark(0);
                  std::vector<std::byte> bytes(receives ? 100 : std::size_t{64} << 20);
                  rank.attempt("call", [&] {
                    if (receives) {
                      comm.recv(bytes, victim);
                    } else {
                      comm.send(bytes, victim);
                    }
                  });
                  expect_the_living_go_on(rank, world, living, victim);
                },
                {victim});
    expect_named(ranks, victim, "call");
  }
}

// Either peer of a send_recv may be the one that dies.
TEST(Death, OfEitherPeerOfASendAndReceiveIsNoticed) {
  for (const int victim : {1, 2}) {
    const auto ranks = run_job({.size = 3},
                               [&](Rank& rank) {
                                 World world = rank.join();
                                 auto& comm = world.communicator();
                                 comm.barrier();
                                 std::vector<int> out(1'000'000);
                                 std::vector<int> in(1'000'000);
                                 if (rank.rank() == 0) {
                                   rank.mark(0);
                                   rank.attempt("call", [&] { comm.send_recv(out, 1, in, 2); });
                                 } else if (rank.rank() == victim) {
                                   rank.await(0, 1);
                                   std::this_thread::sleep_for(milliseconds(10));
                                   die(Manner::kKill);
                                 } else {
                                   rank.attempt("call", [&] {
                                     if (victim == 1) comm.send(out, 0);
                                     if (victim == 2) comm.recv(in, 0);
                                     for (;;) comm.barrier();
                                   });
                                 }
                               },
                               {victim});
    expect_named(ranks, victim, "call");
  }
}

TEST(Death, InTheMiddleOfALongMessageIsNoticed) {
  const int victim = 1;
  const auto ranks = run_job({.size = 2},
                             [&](Rank& rank) {
                               World world = rank.join();
                               auto& comm = world.communicator();
                               std::vector<std::byte> bytes(std::size_t{64} << 20);
                               if (rank.rank() == victim) {
                                 std::thread([] {
                                   std::this_thread::sleep_for(milliseconds(4));
                                   die(Manner::kKill);
                                 }).detach();
                               }
                               rank.attempt("call", [&] {
                                 for (;;) {
                                   if (rank.rank() == 0) comm.send(bytes, 1);
                                   if (rank.rank() == 1) comm.recv(bytes, 0);
                                 }
                               });
                             },
                             {victim});
  expect_named(ranks, victim, "call");
}

// A waiting receive that does not need the dead rank is not harmed. The next call that needs it
// fails.
TEST(Death, OfAThirdRankDuringAMessageIsNotForgotten) {
  const int victim = 2;
  const auto ranks = run_job(
      {.size = 3},
      [&](Rank& rank) {
        World world = rank.join();
        auto& comm = world.communicator();
        comm.barrier();
        if (rank.rank() == victim) {
          rank.await(0, 1);
          die(Manner::kKill);
        }
        std::vector<int> x{17};
        if (rank.rank() == 0) {
          rank.mark(0);
          x[0] = 0;
          rank.attempt("recv", [&] { comm.recv(x, 1); });
        } else {
          // Long enough for rank 0 to have seen the death while it waits.
          rank.await(1, 1);
          std::this_thread::sleep_for(milliseconds(300));
          rank.attempt("send", [&] { comm.send(x, 0); });
        }
        rank.attempt("call", [&] { comm.barrier(); });
      },
      {victim},
      [&](const Watcher& watcher) {
        watcher.await(0, 1);
        std::this_thread::sleep_for(milliseconds(50));
        watcher.mark(1);
      });
  expect_named(ranks, victim, "call");
}

TEST(Death, LeavesDisjointGroupsAlone) {
  // Ranks 0, 1 and ranks 2, 3; rank 3 dies while the others work.
  const auto ranks = run_job(
      {.size = 4},
      [](Rank& rank) {
        World world = rank.join();
        Communicator pair = world.communicator().split({.color = rank.rank() / 2});
        if (rank.rank() == 3) {
          rank.await(0, 2);
          die(Manner::kKill);
        }
        if (rank.rank() == 2) {
          expect_death(until_it_throws(rank, "call", [&] { pair.barrier(); }), rank, 1, "pair");
        } else {
          for (int round = 0; round < 300; ++round) {
            if (round == 50) rank.mark(0);
            const std::string wrong = wrong_results(pair, round, 900);
            rank.check(wrong.empty(), wrong);
          }
        }
      },
      {3});
  EXPECT_EQ(ranks[2].number("call.pid"), ranks[3].pid);
}

TEST(Death, OfAllButOneIsNoticed) {
  run_job({.size = 5},
          [](Rank& rank) {
            World world = rank.join();
            world.communicator().barrier();
            if (rank.rank() != 3) die(Manner::kKill);
            const Outcome outcome =
                until_it_throws(rank, "call", [&] { world.communicator().barrier(); });
            rank.check(outcome.kind == "PeerDied" && outcome.peer != 3, outcome.message);
          },
          {0, 1, 2, 4});
}

// --- At any point -------------------------------------------------------------------------------

void random_rounds(unsigned seed, int rounds, const std::vector<std::string>& engines) {
  std::mt19937 random(seed);
  for (int round = 0; round < rounds; ++round) {
    const int size = 2 + static_cast<int>(random() % 4);
    const int victim = static_cast<int>(random() % static_cast<unsigned>(size));
    const unsigned work = random();
    const auto after = microseconds(random() % 12'000);
    SCOPED_TRACE(fmt::format("round {} of seed {}: {} ranks, rank {} dies after {} us",
                             round,
                             seed,
                             size,
                             victim,
                             after.count()));
    const auto ranks = run_job(
        {.size = size, .engines = engines},
        [&](Rank& rank) {
          World world = rank.join();
          Communicator living = group_of_living(world, victim);
          rank.mark(0);
          rank.attempt("call", [&] { work_for_ever(world.communicator(), work); });
          expect_the_living_go_on(rank, world, living, victim);
        },
        {victim},
        [&](const Watcher& watcher) {
          watcher.await(0, size);
          std::this_thread::sleep_for(after);
          watcher.signal(victim, SIGKILL);
        });
    expect_named(ranks, victim, "call");
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Death, AtAnyPointIsNoticed) { random_rounds(20'261, 40, {}); }
TEST(Death, AtAnyPointOfTheAlgorithmEngineIsNoticed) { random_rounds(77, 15, {"algorithm"}); }

}  // namespace
}  // namespace hocket::multiprocess
