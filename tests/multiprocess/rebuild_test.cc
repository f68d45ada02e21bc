// Going on with the ranks that are left: after deaths, stops, disagreements, and within all of it.
#include <dirent.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <barrier>
#include <csignal>
#include <fstream>
#include <random>
#include <thread>

#include "collectives.h"
#include "pretended_hosts.h"

namespace hocket::multiprocess {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kPlenty = seconds(40);

// A forked process of a job has separate memory. Each rank stores its world here, as it ends
// without closing it.
void check_works(const Rank& rank, Communicator& comm, int salt = 0) {
  for (const std::size_t count : {1, 700, 60'000}) {
    const std::string wrong = wrong_results(comm, salt, count);
    rank.check(wrong.empty(), wrong);
  }
}

// Rebuilds until a barrier succeeds on the ranks that are left.
Communicator go_on(const Rank& rank, Communicator comm, const RebuildOptions& options = {}) {
  for (int tries = 0; tries < 20; ++tries) {
    comm = comm.rebuild(options);
    const Outcome outcome = outcome_of([&] { comm.barrier({.deadline = kPlenty}); });
    if (outcome.ok()) return comm;
    rank.check(outcome.kind == "PeerDied" || outcome.kind == "Aborted", outcome.message);
  }
  rank.check(false, "twenty rebuilds did not do");
  return comm;
}

void report_members(const Rank& rank, const Communicator& comm) {
  rank.report("members", fmt::format("{}", fmt::join(comm.world_ranks(), ",")));
  rank.report("epoch", std::to_string(comm.epoch()));
  rank.check(comm.world_ranks()[static_cast<std::size_t>(comm.rank())] == rank.rank(),
             "my rank is not mine");
}

// All of `living` report these members.
void expect_members(const std::vector<Result>& ranks,
                    const std::vector<int>& living,
                    const std::string& key = "members") {
  const std::string expected = fmt::format("{}", fmt::join(living, ","));
  for (const int rank : living) {
    EXPECT_EQ(ranks[static_cast<std::size_t>(rank)].get(key), expected) << "on rank " << rank;
  }
}

int open_descriptors() {
  int count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

int threads() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("Threads:")) return std::atoi(line.c_str() + 8);
  }
  return -1;
}

// Resident pages of the job's shared memory.
long shared_pages() {
  std::ifstream file("/proc/self/statm");
  long size = 0;
  long resident = 0;
  long shared = 0;
  file >> size >> resident >> shared;
  return shared;
}

TEST(Rebuild, WithoutOneAndWithoutTwo) {
  for (const std::vector<int>& victims : {std::vector<int>{0}, {2}, {3}, {0, 1}, {1, 3}}) {
    std::vector<int> living;
    for (int i = 0; i < 4; ++i) {
      if (std::find(victims.begin(), victims.end(), i) == victims.end()) living.push_back(i);
    }
    const auto is_victim = [&](int rank) {
      return std::find(victims.begin(), victims.end(), rank) != victims.end();
    };
    const auto ranks = run_job(
        {.size = 4},
        [&](Rank& rank) {
          World world = rank.join();
          Communicator comm = world.communicator().duplicate();
          comm.barrier();
          rank.mark(0);
          rank.await(0, 4);
          if (is_victim(rank.rank())) raise(SIGKILL);
          rank.attempt("call", [&] {
            for (;;) comm.barrier({.deadline = kPlenty});
          });
          // One may see the first death only, so that the second shows later.
          Communicator next = go_on(rank, std::move(comm));
          report_members(rank, next);
          check_works(rank, next);
        },
        victims);
    expect_members(ranks, living);
    for (const int rank : living) {
      EXPECT_NE(ranks[static_cast<std::size_t>(rank)].get("call"), "ok");
    }
  }
}

TEST(Rebuild, OfTheWorldReplacesItsCommunicator) {
  const auto ranks =
      run_job({.size = 3},
              [](Rank& rank) {
                World world = rank.join();
                world.communicator().barrier();
                if (rank.rank() == 0) raise(SIGKILL);
                rank.attempt("call", [&] {
                  for (;;) world.communicator().barrier();
                });
                Communicator& comm = world.rebuild();
                rank.check(comm.name() == "world~1" && comm.epoch() == 1, comm.name());
                rank.check(world.size() == 2 && world.rank() == rank.rank() - 1,
                           "the world is the old one");
                report_members(rank, world.communicator());
                check_works(rank, world.communicator());
                check_works(rank, world.intra_node());
                auto array = comm.symmetric().empty(1000, DType::kFloat32);
                comm.all_reduce(array.local());
              },
              {0});
  expect_members(ranks, {1, 2});
}

TEST(Rebuild, AfterMismatchAbortAndDeadline) {
  run_job({.size = 3}, [](Rank& rank) {
    World world = rank.join();
    std::vector<float> x(8);
    const Outcome mismatch = outcome_of([&] {
      auto& comm = world.communicator();
      if (rank.rank() == 1) {
        comm.all_reduce(x, {.op = ReduceOp::kMax});
      } else {
        comm.all_reduce(x);
      }
      comm.barrier();
    });
    rank.check(mismatch.kind == "Mismatch", mismatch.message);
    check_works(rank, world.rebuild(), 1);
    rank.mark(0);
    rank.await(0, 3);
    if (rank.rank() == 2) world.communicator().abort("enough");
    const Outcome aborted = outcome_of([&] {
      for (;;) world.communicator().barrier();
    });
    rank.check(aborted.kind == "Aborted", aborted.message);
    check_works(rank, world.rebuild(), 2);
    const Outcome late = outcome_of([&] {
      if (rank.rank() != 0) world.communicator().barrier({.deadline = milliseconds(50)});
      if (rank.rank() == 0) {
        while (!world.communicator().status()) std::this_thread::sleep_for(milliseconds(1));
      }
    });
    rank.check(rank.rank() == 0 ? late.ok() : late.kind == "DeadlineExceeded", late.message);
    check_works(rank, world.rebuild(), 3);
    rank.check(world.communicator().epoch() == 3 && world.communicator().name() == "world~3",
               world.communicator().name());
  });
}

// Rebuild of a healthy communicator. Calls made before end well; no rank is torn out of one.
TEST(Rebuild, OfAHealthyCommunicatorHarmsNoCallBeforeIt) {
  run_job({.size = 3}, [](Rank& rank) {
    World world = rank.join();
    for (int round = 0; round < 60; ++round) {
      check_works(rank, world.communicator(), round);
      std::vector<int> x(50'000, rank.rank() + round);
      world.communicator().broadcast(x, {.root = round % 3});
      rank.check(x == std::vector<int>(50'000, round % 3 + round), "the broadcast is wrong");
      world.rebuild({.deadline = kPlenty});
    }
  });
}

TEST(Rebuild, CallsTheOthersOutOfTheirCalls) {
  const auto ranks = run_job({.size = 4}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    comm.barrier();
    std::vector<double> x(100);
    rank.attempt("call", [&] {
      if (rank.rank() == 1) comm.all_reduce(x, {.deadline = kPlenty});
      if (rank.rank() == 2) comm.recv(x, 3, {.deadline = kPlenty});
      if (rank.rank() == 0) comm.all_reduce_async(x, {.deadline = kPlenty}).wait();
    });
    world.rebuild({.deadline = kPlenty});
    check_works(rank, world.communicator());
  });
  for (const int rank : {0, 1, 2}) {
    const Result& result = ranks[static_cast<std::size_t>(rank)];
    EXPECT_EQ(result.get("call"), "Aborted") << result.get("call.message");
    EXPECT_NE(result.get("call.message").find("called rebuild()"), std::string::npos)
        << result.get("call.message");
  }
}

// The other rank's end comes later than the watchdog allows.
TEST(Rebuild, IsGivenUpWhereAnotherThreadCloses) {
  run_job({.size = 2}, [](Rank& rank) {
    World world = rank.join();
    Communicator comm = world.communicator().duplicate();
    comm.barrier();
    if (rank.rank() == 0) {
      std::thread rebuilds([&] {
        const Outcome outcome = outcome_of(
            [&] { static_cast<void>(comm.rebuild({.deadline = std::chrono::seconds(1000)})); });
        rank.check(outcome.kind == "Aborted" || outcome.kind == "InvalidArgument",
                   outcome.kind + ": " + outcome.message);
      });
      std::this_thread::sleep_for(std::chrono::milliseconds(100));  // or it is refused
      comm.close();
      rebuilds.join();
      rank.mark(0);
    }
    rank.await(0, 1);
  });
}

TEST(Rebuild, EndsTheOldCommunicatorAndItsWork) {
  const auto ranks = run_job({.size = 2}, [](Rank& rank) {
    World world = rank.join();
    Communicator old = world.communicator().duplicate();
    std::vector<float> x(10, 1.0F);
    Prepared prepared = old.prepare_all_reduce(x);
    prepared();
    auto array = old.symmetric().empty(100, DType::kFloat32);
    Work work = rank.rank() == 0 ? old.all_reduce_async(x) : Work();
    rank.mark(0);
    rank.await(0, 2);
    Communicator next = old.rebuild();
    if (rank.rank() == 0) rank.attempt("work", [&] { work.wait(); });
    rank.attempt("call", [&] { old.barrier({.deadline = kPlenty}); });
    rank.attempt("prepared", [&] { prepared(); });
    rank.attempt("symmetric",
                 [&] { static_cast<void>(old.symmetric().empty(10, DType::kFloat32)); });
    rank.attempt("group", [&] { static_cast<void>(old.split({})); });
    rank.attempt("send", [&] { old.send(x, 1 - rank.rank(), {.deadline = kPlenty}); });
    // Memory that peers can reach stays reachable.
    next.all_reduce(array.local());
    check_works(rank, next);
    rank.attempt("again", [&] { static_cast<void>(old.rebuild()); });
    old.close();
    rank.attempt("closed", [&] { static_cast<void>(old.rebuild()); });
    Communicator left = next.duplicate();
    world.close();
    rank.attempt("left", [&] { static_cast<void>(left.rebuild()); });
  });
  for (const Result& result : ranks) {
    for (const char* key : {"call", "prepared", "symmetric", "group", "send"}) {
      EXPECT_EQ(result.get(key), "Aborted")
          << key << ": " << result.get(key + std::string(".message"));
      EXPECT_NE(result.get(key + std::string(".message")).find("rebuild"), std::string::npos);
    }
    EXPECT_EQ(result.get("again"), "InvalidArgument");
    EXPECT_EQ(result.get("closed"), "InvalidArgument");
    EXPECT_EQ(result.get("left"), "InvalidArgument") << result.get("left.message");
  }
  EXPECT_EQ(ranks[0].get("work"), "Aborted");
}

TEST(Rebuild, NamesARankThatDoesNotCome) {
  const auto ranks = run_job({.size = 3}, [](Rank& rank) {
    World world = rank.join();
    world.communicator().barrier();
    if (rank.rank() == 1) {
      rank.await(0, 2);
    } else {
      rank.attempt("early", [&] { world.rebuild({.deadline = milliseconds(200)}); });
      rank.mark(0);
    }
    // It is called again, and all come.
    world.rebuild({.deadline = kPlenty});
    report_members(rank, world.communicator());
    check_works(rank, world.communicator());
  });
  expect_members(ranks, {0, 1, 2});
  for (const int rank : {0, 2}) {
    const Result& result = ranks[static_cast<std::size_t>(rank)];
    EXPECT_EQ(result.get("early"), "DeadlineExceeded");
    EXPECT_EQ(result.get("early.missing"), "1");
    EXPECT_NE(result.get("early.message").find(fmt::format("rank 1 (pid {})", ranks[1].pid)),
              std::string::npos)
        << result.get("early.message");
  }
}

// A rank's invalid arguments end the others' calls at once. Then all repeat the call.
void refuse_and_repeat(Rank& rank, World& world) {
  world.communicator().barrier();
  for (int round = 0; round < 6; ++round) {
    const int refuser = round % world.size();
    const Outcome outcome = outcome_of([&] {
      if (rank.rank() == refuser) world.communicator().refuse_rebuild("not now");
      world.rebuild({.deadline = kPlenty});
    });
    const std::string expected = rank.rank() == refuser
                                     ? "rebuild() of"
                                     : fmt::format("rank {} refused rebuild() of world", refuser);
    rank.check(outcome.kind == "InvalidArgument" &&
                   outcome.message.find(expected) != std::string::npos &&
                   outcome.message.find("not now") != std::string::npos,
               fmt::format("round {}: {} {}", round, outcome.kind, outcome.message));
    if (round % 2 == 0) continue;  // twice in a row
    world.rebuild({.deadline = kPlenty});
    check_works(rank, world.communicator(), round);
  }
  report_members(rank, world.communicator());
}

TEST(Rebuild, RefusedByOneIsHeardByAll) {
  const auto ranks = run_job({.size = 4}, [](Rank& rank) {
    World world = rank.join();
    refuse_and_repeat(rank, world);
  });
  expect_members(ranks, {0, 1, 2, 3});
}

// One comes to it only after the refuser has called it again.
TEST(Rebuild, RefusedByOneIsHeardByWhoComesLate) {
  const auto ranks = run_job({.size = 3}, [](Rank& rank) {
    World world = rank.join();
    world.communicator().barrier();
    if (rank.rank() == 2) rank.await(0, 2);
    const Outcome outcome = outcome_of([&] {
      if (rank.rank() == 1) world.communicator().refuse_rebuild("not now");
      world.rebuild({.deadline = kPlenty});
    });
    rank.check(outcome.kind == "InvalidArgument", outcome.kind + outcome.message);
    rank.mark(0);
    world.rebuild({.deadline = kPlenty});
    report_members(rank, world.communicator());
    check_works(rank, world.communicator());
  });
  expect_members(ranks, {0, 1, 2});
}

// A refused rebuild of a healthy communicator that no other rank called harms nothing, then or
// later.
TEST(Rebuild, RefusedByOneAndGivenUpHarmsNothing) {
  const auto ranks = run_job({.size = 3}, [](Rank& rank) {
    World world = rank.join();
    if (rank.rank() == 1) {
      const Outcome outcome =
          outcome_of([&] { world.communicator().refuse_rebuild("a slip of the tongue"); });
      rank.check(outcome.kind == "InvalidArgument", outcome.kind + outcome.message);
    }
    check_works(rank, world.communicator());
    world.rebuild({.deadline = kPlenty});
    report_members(rank, world.communicator());
    check_works(rank, world.communicator());
  });
  expect_members(ranks, {0, 1, 2});
}

// A stopped rank is excluded, and gets an error when it wakes up.
TEST(Rebuild, WithoutAStoppedRankThatWakesUpTooLate) {
  for (const int victim : {0, 2}) {
    const auto ranks = run_job(
        {.size = 3},
        [&](Rank& rank) {
          World world = rank.join();
          world.communicator().barrier();
          rank.mark(0);
          if (rank.rank() == victim) {
            rank.attempt("call", [&] {
              for (;;) world.communicator().barrier({.deadline = kPlenty});
            });
            rank.attempt("rebuild", [&] { world.rebuild(); });
            rank.attempt("again", [&] { world.rebuild(); });
            rank.attempt("later", [&] { world.communicator().barrier(); });
            return;
          }
          rank.await(1, 1);
          rank.attempt("call", [&] {
            for (;;) world.communicator().barrier({.deadline = milliseconds(300)});
          });
          world.rebuild({.deadline = milliseconds(300), .exclude_missing = true});
          report_members(rank, world.communicator());
          check_works(rank, world.communicator());
          rank.mark(2);
          // The excluded rank disturbs no other when it wakes up.
          for (int i = 0; i < 20; ++i) check_works(rank, world.communicator(), i);
        },
        {},
        [&](const Watcher& watcher) {
          watcher.await(0, 3);
          watcher.signal(victim, SIGSTOP);
          watcher.mark(1);
          watcher.await(2, 2);
          watcher.signal(victim, SIGCONT);
        });
    const std::vector<int> living = victim == 0 ? std::vector<int>{1, 2} : std::vector<int>{0, 1};
    expect_members(ranks, living);
    const Result& late = ranks[static_cast<std::size_t>(victim)];
    EXPECT_NE(late.get("call"), "ok");
    for (const char* key : {"rebuild", "again"}) {
      EXPECT_EQ(late.get(key), "RendezvousError") << late.get(key + std::string(".message"));
      EXPECT_NE(late.get(key + std::string(".message")).find("came too late"), std::string::npos);
    }
    EXPECT_NE(late.get("later"), "ok");
  }
}

TEST(Rebuild, OfGroupsIsOfTheirMembers) {
  const auto ranks =
      run_job({.size = 5},
              [](Rank& rank) {
                World world = rank.join();
                Communicator odd = world.communicator().split({.color = rank.rank() % 2});
                Communicator reversed = world.communicator().new_group(std::vector<int>{4, 3, 1});
                odd.barrier();
                rank.mark(0);
                rank.await(0, 5);
                if (rank.rank() == 3) raise(SIGKILL);
                if (rank.rank() % 2 == 0) {
                  for (int i = 0; i < 20; ++i) check_works(rank, odd, i);  // no business of theirs
                } else {
                  odd = go_on(rank, std::move(odd));
                  rank.check(odd.size() == 1 && odd.epoch() == 1, "the odd ones are not one");
                  check_works(rank, odd);
                }
                if (reversed.is_member()) {
                  reversed = go_on(rank, std::move(reversed));
                  report_members(rank, reversed);
                  check_works(rank, reversed);
                } else {
                  rank.attempt("stranger", [&] { static_cast<void>(reversed.rebuild()); });
                }
                // The world has lost a member, and is rebuilt after its groups.
                world.rebuild({.deadline = kPlenty});
                rank.check(world.size() == 4, "the world is not four");
                check_works(rank, world.communicator());
              },
              {3});
  for (const int rank : {1, 4}) {
    EXPECT_EQ(ranks[static_cast<std::size_t>(rank)].get("members"), "4,1");
  }
  for (const int rank : {0, 2}) {
    EXPECT_EQ(ranks[static_cast<std::size_t>(rank)].get("stranger"), "InvalidArgument");
  }
}

TEST(Rebuild, TwoHundredTimesLeavesNothingBehind) {
  run_job({.size = 3}, [](Rank& rank) {
    World world = rank.join();
    const auto once = [&](int i) {
      std::vector<std::int64_t> x(20'000, i);
      world.communicator().all_reduce(x);
      rank.check(x[19'999] == 3 * i, "the sum is wrong");
      if (i % 2 == 0) world.intra_node().barrier();
      world.rebuild({.deadline = kPlenty});
    };
    // Each rank may at times be the one who allocates.
    for (int i = 0; i < 120; ++i) once(i);
    const int descriptors = open_descriptors();
    const int running = threads();
    const long pages = shared_pages();
    for (int i = 120; i < 320; ++i) once(i);
    rank.check(world.communicator().epoch() == 320, "not every rebuild counted");
    rank.check(open_descriptors() == descriptors, "descriptors are left");
    rank.check(threads() == running, "threads are left");
    rank.check(shared_pages() < pages + 20 * 1024,
               fmt::format("{} pages of shared memory became {}", pages, shared_pages()));
    check_works(rank, world.communicator());
  });
}

TEST(Rebuild, IsOpenToThreads) {
  for (const std::vector<std::string>& engines :
       {std::vector<std::string>{}, std::vector<std::string>{"shm"}}) {
    std::atomic<int> right{0};
    std::barrier through(4);
    run_threads(4,
                [&](Communicator& first) {
                  Communicator comm = first.duplicate();
                  for (int i = 0; i < 30; ++i) {
                    through.arrive_and_wait();
                    if (comm.rank() == i % 4) comm.abort("round");
                    const Outcome outcome = outcome_of([&] {
                      for (;;) comm.barrier();
                    });
                    if (outcome.kind == "Aborted") ++right;
                    comm = comm.rebuild({.deadline = kPlenty});
                    if (wrong_results(comm, i, 500).empty()) ++right;
                  }
                  if (comm.epoch() == 30 && comm.size() == 4) ++right;
                },
                {.engines = engines, .segment_bytes = std::size_t{256} << 20});
    EXPECT_EQ(right, 4 * (30 + 30 + 1));
  }
}

// A second rank is killed at any point of the others' reaction to the first death.
void random_rounds(unsigned seed, int rounds, const std::vector<std::string>& engines) {
  std::mt19937 random(seed);
  for (int round = 0; round < rounds; ++round) {
    const int size = 3 + static_cast<int>(random() % 3);
    const int first = static_cast<int>(random() % static_cast<unsigned>(size));
    const int second =
        (first + 1 + static_cast<int>(random() % static_cast<unsigned>(size - 1))) % size;
    const auto between = microseconds(random() % 1'500);
    SCOPED_TRACE(fmt::format("round {} of seed {}: {} ranks, rank {} dies, rank {} {} us later",
                             round,
                             seed,
                             size,
                             first,
                             second,
                             between.count()));
    std::vector<int> living;
    for (int i = 0; i < size; ++i) {
      if (i != first && i != second) living.push_back(i);
    }
    const auto ranks = run_job(
        {.size = size, .engines = engines},
        [&](Rank& rank) {
          World world = rank.join();
          Communicator comm = world.communicator().duplicate();
          rank.mark(0);
          std::vector<float> x(3'000);
          // Repeats until it is one of the survivors, and all have finished.
          for (int rebuilt = 0;;) {
            const Outcome outcome = outcome_of([&] {
              do {
                comm.all_reduce(x);
              } while (comm.size() > size - 2);
            });
            if (outcome.ok()) break;
            rank.check(outcome.kind == "PeerDied" || outcome.kind == "Aborted", outcome.message);
            comm = comm.rebuild({.deadline = kPlenty});
            rank.check(++rebuilt < 10, "there is no end of rebuilding");
          }
          report_members(rank, comm);
          check_works(rank, comm, round);
        },
        {first, second},
        [&](const Watcher& watcher) {
          watcher.await(0, size);
          watcher.signal(first, SIGKILL);
          std::this_thread::sleep_for(between);
          watcher.signal(second, SIGKILL);
        });
    expect_members(ranks, living);
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Rebuild, AtAnyPointOfWhichAnotherIsKilled) { random_rounds(41, 30, {}); }
TEST(Rebuild, OverTheAlgorithmEngineAtAnyPoint) { random_rounds(42, 8, {"algorithm"}); }

// --- Pretended hosts ----------------------------------------------------------------------------

class RebuildHosts : public PretendedHosts {};

TEST_F(RebuildHosts, GoOnWithoutADeadRank) {
  for (const Placement placement : {in_pairs, in_turn, each_alone}) {
    for (const int victim : {0, 1, 3}) {
      std::vector<int> living;
      for (int i = 0; i < 4; ++i) {
        if (i != victim) living.push_back(i);
      }
      const auto ranks = run_job({.size = 4},
                                 [&](Rank& rank) {
                                   World world = join(rank, placement);
                                   world.communicator().barrier();
                                   rank.mark(0);
                                   rank.await(0, 4);
                                   if (rank.rank() == victim) raise(SIGKILL);
                                   rank.attempt("call", [&] {
                                     for (;;) world.communicator().barrier({.deadline = kPlenty});
                                   });
                                   world.rebuild({.deadline = kPlenty});
                                   report_members(rank, world.communicator());
                                   check_works(rank, world.communicator());
                                   check_works(rank, world.intra_node());
                                 },
                                 {victim});
      expect_members(ranks, living);
      if (HasFailure()) return;
    }
  }
}

TEST_F(RebuildHosts, GoOnWithoutAWholeHost) {
  for (const int host : {0, 1, 2}) {
    std::vector<int> victims{2 * host, 2 * host + 1};
    std::vector<int> living;
    for (int i = 0; i < 6; ++i) {
      if (i / 2 != host) living.push_back(i);
    }
    const auto ranks = run_job(
        {.size = 6, .environment = {{"HOCKET_SILENCE", "0.5"}}},
        [&](Rank& rank) {
          World world = join(rank, in_pairs);
          world.communicator().barrier();
          rank.mark(0);
          rank.await(0, 6);
          if (rank.rank() / 2 == host) raise(SIGKILL);
          while (world.size() > 4) {
            outcome_of([&] { world.communicator().barrier({.deadline = kPlenty}); });
            world.rebuild({.deadline = kPlenty});
          }
          report_members(rank, world.communicator());
          check_works(rank, world.communicator());
        },
        victims);
    expect_members(ranks, living);
    if (HasFailure()) return;
  }
}

TEST_F(RebuildHosts, AgainAndAgain) {
  run_job({.size = 4}, [](Rank& rank) {
    World world = join(rank, in_pairs);
    for (int i = 0; i < 40; ++i) {
      check_works(rank, world.communicator(), i);
      rank.mark(0);
      rank.await(0, 4 * (i + 1));
      if (i % 4 == rank.rank()) world.communicator().abort("next");
      world.rebuild({.deadline = kPlenty});
    }
    rank.check(world.communicator().epoch() == 40, "not every rebuild counted");
    const int descriptors = open_descriptors();
    for (int i = 0; i < 40; ++i) world.rebuild({.deadline = kPlenty});
    rank.check(open_descriptors() == descriptors, "descriptors are left");
    check_works(rank, world.communicator());
  });
}

TEST_F(RebuildHosts, RefusedByOneIsHeardByAll) {
  for (const Placement placement : {in_pairs, each_alone}) {
    const auto ranks = run_job({.size = 4}, [&](Rank& rank) {
      World world = join(rank, placement);
      refuse_and_repeat(rank, world);
    });
    expect_members(ranks, {0, 1, 2, 3});
  }
}

TEST_F(RebuildHosts, AtAnyPointOfWhichAnotherIsKilled) {
  std::mt19937 random(7);
  for (int round = 0; round < 12; ++round) {
    const int first = static_cast<int>(random() % 5);
    const int second = (first + 1 + static_cast<int>(random() % 4)) % 5;
    const auto between = microseconds(random() % 40'000);
    const Placement placement = round % 2 == 0 ? in_pairs : in_turn;
    SCOPED_TRACE(fmt::format(
        "round {}: rank {} dies, rank {} {} us later", round, first, second, between.count()));
    std::vector<int> living;
    for (int i = 0; i < 5; ++i) {
      if (i != first && i != second) living.push_back(i);
    }
    const auto ranks = run_job(
        {.size = 5},
        [&](Rank& rank) {
          World world = join(rank, placement);
          world.communicator().barrier();
          rank.mark(0);
          std::vector<float> x(3'000);
          for (int rebuilt = 0;;) {
            const Outcome outcome = outcome_of([&] {
              do {
                world.communicator().all_reduce(x);
              } while (world.size() > 3);
            });
            if (outcome.ok()) break;
            rank.check(outcome.kind == "PeerDied" || outcome.kind == "Aborted", outcome.message);
            world.rebuild({.deadline = kPlenty});
            rank.check(++rebuilt < 10, "there is no end of rebuilding");
          }
          report_members(rank, world.communicator());
          check_works(rank, world.communicator(), round);
        },
        {first, second},
        [&](const Watcher& watcher) {
          watcher.await(0, 5);
          watcher.signal(first, SIGKILL);
          std::this_thread::sleep_for(between);
          watcher.signal(second, SIGKILL);
        });
    expect_members(ranks, living);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace hocket::multiprocess
