// Ranks that end in good order, or without a word once their work is done: no false alarms.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <set>
#include <thread>

#include "collectives.h"
#include "pretended_hosts.h"
#include "ranks.h"

namespace hocket::multiprocess {
namespace {

using std::chrono::milliseconds;

// `rounds` jobs in which every rank ends right behind its last call, which must have succeeded.
void last_call_then(const std::string& name,
                    std::size_t share,
                    int size,
                    int rounds,
                    const std::vector<std::string>& engines,
                    void (*end)(World&)) {
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE(fmt::format("{} of {} floats, {} ranks, round {}", name, share, size, round));
    run_job({.size = size, .engines = engines}, [&](Rank& rank) {
      World world = rank.join();
      Arrays arrays(size, share);
      const auto& last = collective(name);
      if (name != "barrier") last.run(world.communicator(), arrays, 0, {});
      const Outcome outcome =
          outcome_of([&] { last.run(world.communicator(), arrays, round % size, {}); });
      rank.check(outcome.ok(), "the last call: " + outcome.message);
      end(world);
    });
    if (testing::Test::HasFailure()) return;
  }
}

void end_at_once(World&) { _exit(0); }
void end_by_exit(World&) { exit(0); }
void end_by_close(World& world) { world.close(); }

TEST(Exit, AtOnceAfterTheLastBarrierIsNoDeath) {
  last_call_then("barrier", 1, 2, 150, {}, end_at_once);
  last_call_then("barrier", 1, 3, 150, {}, end_at_once);
  last_call_then("barrier", 1, 5, 40, {}, end_at_once);
}

TEST(Exit, AtOnceAfterTheLastBarrierOfTheAlgorithmEngineIsNoDeath) {
  last_call_then("barrier", 1, 3, 100, {"algorithm"}, end_at_once);
}

TEST(Exit, AtOnceAfterAnyCollectiveIsNoDeath) {
  for (const Collective& each : collectives()) {
    last_call_then(each.name, 5, 3, 12, {}, end_at_once);
    last_call_then(each.name, 70'000, 3, 5, {}, end_at_once);
  }
}

TEST(Exit, AtOnceAfterAnyCollectiveOfTheAlgorithmEngineIsNoDeath) {
  for (const Collective& each : collectives()) {
    last_call_then(each.name, 5, 3, 5, {"algorithm"}, end_at_once);
    last_call_then(each.name, 70'000, 3, 3, {"algorithm"}, end_at_once);
  }
}

TEST(Exit, WithAndWithoutClosingIsNoDeath) {
  last_call_then("barrier", 1, 3, 40, {}, end_by_exit);
  last_call_then("all_reduce", 9, 3, 40, {}, end_by_exit);
  last_call_then("barrier", 1, 3, 40, {}, end_by_close);
  last_call_then("all_reduce", 9, 3, 40, {}, end_by_close);
}

// Many barriers in one job, and the last one just before the end: the latest moment there is.
TEST(Exit, AfterManyBarriersOfGroupsIsNoDeath) {
  for (int round = 0; round < 25; ++round) {
    run_job({.size = 3}, [](Rank& rank) {
      World world = rank.join();
      std::vector<Communicator> groups;
      for (int i = 0; i < 10; ++i) groups.push_back(world.communicator().duplicate());
      for (Communicator& group : groups) group.barrier();
      _exit(0);
    });
    if (HasFailure()) return;
  }
}

// A message that has been sent whole is there, whatever became of its sender.
TEST(Exit, OfASenderLeavesWhatItSent) {
  for (const bool in_order : {true, false}) {
    run_job({.size = 2}, [&](Rank& rank) {
      World world = rank.join();
      std::vector<int> x{41};
      if (rank.rank() == 1) {
        x[0] = 42;
        world.communicator().send(x, 0, {.tag = 3});
        rank.mark(0);
        if (in_order) return;
        _exit(0);
      }
      rank.await(0, 1);
      std::this_thread::sleep_for(milliseconds(100));
      rank.attempt("recv", [&] { world.communicator().recv(x, 1, {.tag = 3}); });
      rank.check(x[0] == 42, "what was sent before the end did not arrive");
    });
  }
}

// In a ring each rank needs one to send to and another to receive from. A rank leaves as soon as it
// has finished.
TEST(Exit, AtOnceAfterARingOfMessagesIsNoDeath) {
  for (int round = 0; round < 40; ++round) {
    run_job({.size = 3}, [&](Rank& rank) {
      World world = rank.join();
      const std::vector<int> out(round % 2 == 0 ? 400'000 : 100, rank.rank());
      std::vector<int> in(out.size(), -1);
      const Outcome outcome = outcome_of([&] {
        world.communicator().send_recv(out, (rank.rank() + 1) % 3, in, (rank.rank() + 2) % 3);
      });
      rank.check(outcome.ok() && in.back() == (rank.rank() + 2) % 3, outcome.message);
      if (round % 4 < 2) _exit(0);
    });
    if (HasFailure()) return;
  }
}

// A rank that calls later gets this error, which does not report a crash.
TEST(Exit, InGoodOrderIsToldApartFromADeath) {
  const auto ranks = run_job({.size = 3}, [](Rank& rank) {
    World world = rank.join();
    world.communicator().barrier();
    if (rank.rank() == 1) exit(0);
    rank.attempt("call", [&] {
      std::vector<int> x{1};
      world.communicator().all_reduce(x);
    });
  });
  for (const int i : {0, 2}) {
    const auto& rank = ranks[static_cast<std::size_t>(i)];
    EXPECT_EQ(rank.get("call"), "PeerDied");
    EXPECT_EQ(rank.number("call.peer"), 1);
    EXPECT_EQ(rank.number("call.pid"), ranks[1].pid);
    EXPECT_NE(rank.get("call.message").find("ended in good order"), std::string::npos)
        << rank.get("call.message");
  }
}

// --- Leftovers -----------------------------------------------------------------------------------

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename();
    if (name.find("hocket") != std::string::npos) names.insert(name);
  }
  return names;
}

// A rank that has said goodbye may still give up calls, as when another thread ended the process.
// The others hear of the goodbye alone.
TEST(Exit, WithCallsUnderWayIsInGoodOrder) {
  constexpr int kGone = 0;
  const auto ranks = run_job({.size = 2}, [](Rank& rank) {
    World world = rank.join();
    Communicator comm = world.communicator().duplicate();
    std::vector<float> x(7, 1.0F);
    std::vector<float> sum(7);
    comm.barrier();
    if (rank.rank() == 1) {
      std::vector<Work> works;
      works.push_back(comm.all_reduce_async(x, sum));
      works.push_back(comm.barrier_async());
      world.close();
      works.clear();
      rank.mark(kGone);
      return;
    }
    rank.await(kGone, 1);
    rank.attempt("first", [&] { comm.broadcast(x, {.root = 1}); });
    rank.attempt("later", [&] { comm.barrier(); });
  });
  for (const char* each : {"first", "later"}) {
    const std::string message = ranks[0].get(std::string(each) + ".message");
    EXPECT_EQ(ranks[0].get(each), "PeerDied") << message;
    EXPECT_NE(message.find("ended in good order"), std::string::npos) << message;
  }
}

struct Ending {
  const char* name;
  void (*end)(World& world);
  const char* told;
  const char* from_afar = nullptr;  // the message of ranks of other hosts, if it is another
};
constexpr const char* kIsGone = "is gone (its process has ended";
// The ways in which a rank's process ends, and the others' messages.
const std::vector<Ending>& endings() {
  static const std::vector<Ending> all = {
      {"exit(0)", [](World&) { exit(0); }, "ended in good order"},
      {"exit(3)", [](World&) { exit(3); }, "ended with exit status 3"},
      {"a reason", [](World&) { tell_end("ran out of fuel"), exit(1); }, "ran out of fuel"},
      {"a reason of the world", [](World& w) { w.tell_end("ran dry"), exit(1); }, "ran dry"},
      {"a reason before close",
       [](World& w) { tell_end("ran out"), w.close(), exit(1); },
       "ran out"},
      {"a reason, and exit(0)",
       [](World&) { tell_end("is lost"), exit(0); },
       "ended in good order"},
      {"a reason, and exit(4)", [](World&) { tell_end("is lost"), exit(4); }, "exit status 4"},
      {"a reason, and _exit",
       [](World&) { tell_end("ran out of fuel"), _exit(1); },
       "ran out of",
       kIsGone},
      {"close at exit", [](World& w) { w.leave_at_exit(), w.close(), exit(5); }, "exit status 5"},
      {"_exit",
       [](World&) { _exit(6); },
       "exited with code 6 and without leaving the job",
       kIsGone},
      {"SIGABRT", [](World&) { abort(); }, "was killed by signal 6 (SIGABRT)", kIsGone},
      {"close, and a reason",
       [](World& w) { w.close(), tell_end("ran out"), exit(1); },
       "ran out",
       "ended in good order"},
      {"trouble, and exit(0)",
       [](World&) { tell_trouble("its reader is lost"), exit(0); },
       "ended in good order, after its reader is lost"},
      {"trouble, and exit(3)",
       [](World&) { tell_trouble("its reader is lost"), exit(3); },
       "ended with exit status 3"},
      {"trouble, and SIGABRT",
       [](World&) { tell_trouble("its reader is lost"), abort(); },
       "was killed by signal 6 (SIGABRT), after its reader is lost,",
       kIsGone},
      {"trouble, and a reason",
       [](World&) { tell_trouble("its reader is lost"), tell_end("ran out"), exit(1); },
       "ran out"},
      {"trouble after a reason",
       [](World&) { tell_end("ran out"), tell_trouble("its reader is lost"), exit(1); },
       "ran out"},
  };
  return all;
}

void expect_endings_are_told(World (*join)(const Rank& rank), bool from_afar) {
  for (const Ending& ending : endings()) {
    SCOPED_TRACE(ending.name);
    const auto ranks = run_job({.size = 2},
                               [&](Rank& rank) {
                                 World world = join(rank);
                                 auto& comm = world.communicator();
                                 comm.barrier();
                                 if (rank.rank() == 1) {
                                   std::this_thread::sleep_for(milliseconds(20));
                                   ending.end(world);
                                 }
                                 std::vector<int> x(1);
                                 rank.attempt("recv", [&] { comm.recv(x, 1); });
                               },
                               {1});
    EXPECT_EQ(ranks[0].get("recv"), "PeerDied");
    const std::string text = ranks[0].get("recv.message");
    const bool differs = from_afar && ending.from_afar != nullptr;
    const char* told = differs ? ending.from_afar : ending.told;
    EXPECT_NE(text.find(told), std::string::npos) << text;
  }
}

TEST(Exit, IsToldByItsStatusAndReason) {
  expect_endings_are_told([](const Rank& rank) { return rank.join(); }, false);
}

class ExitOfHosts : public PretendedHosts {};

TEST_F(ExitOfHosts, IsToldByItsStatusAndReason) {
  expect_endings_are_told([](const Rank& rank) { return join(rank, each_alone); }, true);
}

// The function that the destructor of a global object calls. That runs after hocket's handlers,
// also where a test before this one has registered them.
std::function<void()>& after_hocket() {
  static auto* const function = new std::function<void()>;
  return *function;
}
struct AtTheEnd {
  ~AtTheEnd() {
    if (after_hocket()) after_hocket()();
  }
} const at_the_end;

struct LateCall {
  const char* name;
  void (*make)(Communicator& world, Communicator& group);
};
const std::vector<LateCall>& late_calls() {
  static std::vector<int> x(2);
  static const std::vector<LateCall> all = {
      {"barrier", [](Communicator& world, Communicator&) { world.barrier(); }},
      {"barrier of a group", [](Communicator&, Communicator& group) { group.barrier(); }},
      {"barrier_async", [](Communicator& world, Communicator&) { world.barrier_async().wait(); }},
      {"all_reduce", [](Communicator& world, Communicator&) { world.all_reduce(x); }},
      {"duplicate",
       [](Communicator& world, Communicator&) { static_cast<void>(world.duplicate()); }},
      {"rebuild", [](Communicator& world, Communicator&) { static_cast<void>(world.rebuild()); }},
      {"symmetric",
       [](Communicator& world, Communicator&) {
         static_cast<void>(world.symmetric().empty<float>(10));
       }},
      {"send", [](Communicator& world, Communicator&) { world.send(x, 1 - world.rank()); }},
      {"recv", [](Communicator& world, Communicator&) { world.recv(x, 1 - world.rank()); }},
      {"probe of itself", [](Communicator&, Communicator& group) { group.probe(group.rank()); }},
  };
  return all;
}

TEST(Exit, RefusesLaterCallsBecauseTheProcessEnds) {
  const auto ranks = run_job({.size = 2}, [](Rank& rank) {
    World world = rank.join();
    Communicator group = world.communicator().duplicate();
    world.communicator().barrier();
    after_hocket() = [&] {
      for (const LateCall& call : late_calls()) {
        rank.attempt(call.name, [&] { call.make(world.communicator(), group); });
      }
      rank.report("close", outcome_of([&] { world.close(); }));
    };
    exit(0);
  });
  for (const Result& rank : ranks) {
    EXPECT_TRUE(rank.exited());
    for (const LateCall& call : late_calls()) {
      const std::string key = fmt::format("{}.message", call.name);
      const std::string text = rank.get(key);
      EXPECT_NE(rank.get(call.name), "ok") << call.name;
      EXPECT_NE(text.find("this process is ending"), std::string::npos)
          << call.name << ": " << text;
    }
    EXPECT_EQ(rank.get("close"), "ok");
  }
}

// Its main thread hears of this, and not that a rank of its own number has gone.
TEST(Exit, ByAnotherThreadEndsTheCallUnderWay) {
  constexpr int kHasHeard = 0;
  const auto ranks =
      run_job({.size = 3},
              [](Rank& rank) {
                World world = rank.join();
                auto& comm = world.communicator();
                comm.barrier();
                std::vector<int> x(2);
                if (rank.rank() == 1) {
                  after_hocket() = [&] { rank.await(kHasHeard, 1); };
                  std::thread([] {
                    std::this_thread::sleep_for(milliseconds(20));
                    exit(3);
                  }).detach();
                }
                rank.attempt("call", [&] { comm.recv(x, rank.rank() == 1 ? 0 : 1); });
                if (rank.rank() != 1) return;
                const auto status = comm.status();
                rank.report("status", status ? status->message : "none");
                rank.mark(kHasHeard);
                for (;;) pause();
              },
              {1});
  EXPECT_TRUE(ranks[1].exited(3));
  EXPECT_EQ(ranks[1].get("call"), "Aborted");
  for (const char* each : {"call.message", "status"}) {
    const std::string text = ranks[1].get(each);
    EXPECT_NE(text.find("this process is ending"), std::string::npos) << text;
  }
  for (const std::size_t other : {0, 2}) {
    EXPECT_EQ(ranks[other].get("call"), "PeerDied");
    const std::string text = ranks[other].get("call.message");
    EXPECT_NE(text.find("ended with exit status 3"), std::string::npos) << text;
  }
}

// The end compares calls on the communicator. The main thread, which begins a call meanwhile, is
// not told that two threads use it.
TEST(Exit, ByAnotherThreadIsNoSecondUser) {
  for (int round = 0; round < 30; ++round) {
    const auto ranks = run_job({.size = 3},
                               [](Rank& rank) {
                                 World world = rank.join();
                                 world.communicator().barrier();
                                 after_hocket() = [&] { rank.await(0, 3); };
                                 if (rank.rank() == 1) {
                                   std::thread([] {
                                     std::this_thread::sleep_for(milliseconds(5));
                                     exit(0);
                                   }).detach();
                                 }
                                 rank.attempt("call", [&] {
                                   for (std::vector<int> x(3);;) world.communicator().all_reduce(x);
                                 });
                                 rank.mark(0);
                                 while (rank.rank() == 1) pause();
                               },
                               {1});
    const std::string text = ranks[1].get("call.message");
    ASSERT_NE(text.find("this process is ending"), std::string::npos) << text;
  }
}

TEST(Exit, ByKillingAllRanksLeavesNothingBehind) {
  const auto before = names_in("/dev/shm");
  const auto before_tmp = names_in(std::filesystem::temp_directory_path());
  std::vector<int> all{0, 1, 2, 3};
  run_job(
      {.size = 4},
      [](Rank& rank) {
        World world = rank.join();
        auto array = world.communicator().symmetric().empty<float>(100'000);
        auto group = world.communicator().duplicate();
        rank.mark(0);
        for (;;) group.all_reduce(array);
      },
      all,
      [&](const Watcher& watcher) {
        watcher.await(0, 4);
        // By the names of open files too: a memfd has none that outlives it.
        for (const int rank : all) watcher.signal(rank, SIGKILL);
      });
  EXPECT_EQ(names_in("/dev/shm"), before);
  EXPECT_EQ(names_in(std::filesystem::temp_directory_path()), before_tmp);
}

}  // namespace
}  // namespace hocket::multiprocess
