// Ranks that make different calls: all get the same Mismatch.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <array>
#include <exception>
#include <ostream>
#include <thread>

#include "collectives.h"
#include "pretended_hosts.h"
#include "ranks.h"

namespace hocket::multiprocess {
namespace {

using std::chrono::seconds;

struct World3 {
  Communicator& comm;
  Arrays& arrays;
  SymmetricArray& symmetric;
};
using Action = std::function<void(World3)>;

struct Case {
  std::string name;
  Action most;        // what ranks but one call
  Action odd;         // what that one calls
  const char* first;  // what the message must name, of each side
  const char* second;
};

std::span<float> part(World3 w, std::size_t count) { return std::span(w.arrays.in).first(count); }
std::span<float> out(World3 w, std::size_t count) { return std::span(w.arrays.out).first(count); }

constexpr std::size_t kLarge = 50'000;

std::vector<Case> cases() {
  const auto all_reduce = [](std::size_t count, ReduceOp op = ReduceOp::kSum) {
    return [=](World3 w) { w.comm.all_reduce(part(w, count), {.op = op}); };
  };
  const auto broadcast = [](std::size_t count, int root) {
    return [=](World3 w) { w.comm.broadcast(part(w, count), {.root = root}); };
  };
  const auto gather_v = [](std::array<std::size_t, 3> counts) {
    return [=](World3 w) {
      const std::size_t own = counts[static_cast<std::size_t>(w.comm.rank())];
      const std::size_t all = counts[0] + counts[1] + counts[2];
      w.comm.all_gather_v(part(w, own), out(w, all), {.counts = counts});
    };
  };
  const auto coalesced = [](std::array<std::size_t, 2> counts) {
    return [=](World3 w) {
      const std::array<ArrayView, 2> list{part(w, counts[0]), out(w, counts[1])};
      w.comm.all_reduce_coalesced(list);
    };
  };
  const auto group = [](std::vector<int> ranks) {
    return [=](World3 w) { static_cast<void>(w.comm.new_group(ranks)); };
  };
  return {
      {"Kind",
       all_reduce(4),
       [](World3 w) { w.comm.barrier(); },
       "all_reduce #2 sum float32[4]",
       "barrier #2"},
      {"KindLarge",
       all_reduce(kLarge),
       [](World3 w) { w.comm.all_gather(part(w, kLarge), w.arrays.out); },
       "all_reduce #2",
       "all_gather #2"},
      {"Op",
       all_reduce(4),
       all_reduce(4, ReduceOp::kMax),
       "all_reduce #2 sum float32[4]",
       "all_reduce #2 max float32[4]"},
      {"Prefix",
       [](World3 w) { w.comm.scan(part(w, 4)); },
       [](World3 w) { w.comm.exscan(part(w, 4)); },
       "scan #2 sum float32[4]",
       "exscan #2 sum float32[4]"},
      {"PrefixLarge",
       [](World3 w) { w.comm.scan(part(w, kLarge)); },
       all_reduce(kLarge),
       "scan #2 sum float32[50000]",
       "all_reduce #2 sum float32[50000]"},
      {"DType",
       all_reduce(4),
       [](World3 w) {
         std::vector<std::int32_t> x(4);
         w.comm.all_reduce(x);
       },
       "float32[4]",
       "int32[4]"},
      {"Count", all_reduce(4), all_reduce(5), "float32[4]", "float32[5]"},
      {"CountAcrossPaths", all_reduce(4), all_reduce(kLarge), "float32[4]", "float32[50000]"},
      {"CountLarge",
       all_reduce(kLarge),
       all_reduce(kLarge - 1),
       "float32[50000]",
       "float32[49999]"},
      {"Root", broadcast(4, 0), broadcast(4, 1), "root 0", "root 1"},
      {"RootLarge", broadcast(kLarge, 0), broadcast(kLarge, 2), "root 0", "root 2"},
      {"RootOfReduce",
       [](World3 w) { w.comm.reduce(part(w, 4), {.root = 0}); },
       [](World3 w) { w.comm.reduce(part(w, 4), {.root = 1}); },
       "root 0",
       "root 1"},
      {"Order",
       [](World3 w) {
         w.comm.barrier();
         w.comm.broadcast(part(w, 4), {.root = 0});
       },
       [](World3 w) {
         w.comm.broadcast(part(w, 4), {.root = 0});
         w.comm.barrier();
       },
       "barrier #2",
       "broadcast #2"},
      {"GroupRanks", group({0, 1}), group({1, 0}), "new_group #2", "new_group #2"},
      {"GroupKind",
       group({0, 1, 2}),
       [](World3 w) { static_cast<void>(w.comm.split({.color = 0})); },
       "new_group #2",
       "split #2"},
      {"CoalescedList", coalesced({3, 4}), coalesced({4, 3}), "#2", "#2"},
      {"CoalescedAndPlain", coalesced({3, 4}), all_reduce(7), "#2", "#2"},
      {"Parts", gather_v({1, 2, 3}), gather_v({1, 3, 3}), "all_gather_v #2", "all_gather_v #2"},
      {"PartsGivenAndNot",
       gather_v({2, 2, 2}),
       [](World3 w) { w.comm.all_gather_v(part(w, 2), out(w, 6)); },
       "#2",
       "#2"},
      {"PartsOfAllToAll",
       [](World3 w) {
         const std::array<std::size_t, 3> two{2, 2, 2};
         w.comm.all_to_all_v(part(w, 6), {.counts = two}, out(w, 6), {.counts = two});
       },
       [](World3 w) {
         const std::array<std::size_t, 3> three{3, 3, 3};
         w.comm.all_to_all_v(part(w, 9), {.counts = three}, out(w, 9), {.counts = three});
       },
       "all_to_all_v #2",
       "all_to_all_v #2"},
      {"SymmetricAndOrdinary",
       [](World3 w) { w.comm.all_reduce(w.symmetric); },
       all_reduce(5000),
       "all_reduce #2",
       "all_reduce #2"},
      {"SymmetricCount",
       [](World3 w) { static_cast<void>(w.comm.symmetric().empty<float>(10)); },
       [](World3 w) { static_cast<void>(w.comm.symmetric().empty<float>(11)); },
       "float32[10]",
       "float32[11]"},
  };
}

void PrintTo(const Case& test, std::ostream* out) { *out << test.name; }

class Mismatches : public testing::TestWithParam<Case> {};

TEST_P(Mismatches, AreRaisedAlikeOnAllRanks) {
  const Case& test = GetParam();
  for (const char* engine : {"shm", "algorithm"}) {
    for (const int odd : {0, 2}) {
      SCOPED_TRACE(fmt::format("engine {}, odd rank {}", engine, odd));
      const auto ranks = run_job({.size = 3, .engines = {engine}}, [&](Rank& rank) {
        World world = rank.join();
        Communicator comm = world.communicator().duplicate();
        comm.set_deadline(seconds(30));
        Arrays arrays(3, kLarge);
        // Made elsewhere, so that the numbers in messages stay small.
        auto symmetric = world.communicator().symmetric().empty<float>(5000);
        comm.barrier();
        const World3 w{comm, arrays, symmetric};
        rank.attempt("call", [&] {
          (rank.rank() == odd ? test.odd : test.most)(w);
          // A rank whose part had finished hears of it in the next call.
          for (;;) comm.barrier();
        });
        const Outcome later = outcome_of([&] { comm.barrier(); });
        rank.check(later.kind == "Mismatch", "a later call: " + later.kind + later.message);
        world.communicator().barrier();  // other communicators take no harm
      });
      const std::string message = ranks[0].get("call.message");
      for (const Result& rank : ranks) {
        EXPECT_EQ(rank.get("call"), "Mismatch") << rank.get("call.message");
        EXPECT_EQ(rank.get("call.message"), message);
        EXPECT_EQ(rank.get("call.calls"), ranks[0].get("call.calls"));
      }
      EXPECT_NE(message.find(test.first), std::string::npos) << message;
      EXPECT_NE(message.find(test.second), std::string::npos) << message;
      EXPECT_NE(message.find(fmt::format("rank {}", odd)), std::string::npos) << message;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Mismatch, Mismatches, testing::ValuesIn(cases()), [](const auto& each) {
  return each.param.name;
});

TEST(Mismatch, OfAsyncCallsEndsAllWork) {
  const auto ranks = run_job({.size = 3}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    std::vector<std::vector<float>> arrays(6, std::vector<float>(100));
    std::vector<Work> works;
    std::exception_ptr refused;
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      const bool odd = i == 3 && rank.rank() == 1;
      // The others may have found the mismatch before this rank has started all.
      try {
        works.push_back(
            comm.all_reduce_async(arrays[i], {.op = odd ? ReduceOp::kMin : ReduceOp::kSum}));
      } catch (const Mismatch&) {
        refused = std::current_exception();
        break;
      }
    }
    for (std::size_t i = 0; i < 3; ++i) {
      const Outcome outcome = outcome_of([&] { works[i].wait(); });
      rank.check(outcome.ok(), "a call before the mismatch: " + outcome.message);
    }
    rank.attempt("call", [&] {
      if (works.size() == 3) std::rethrow_exception(refused);
      works[3].wait();
    });
    for (std::size_t i = 4; i < works.size(); ++i) {
      const Outcome outcome = outcome_of([&] { works[i].wait(); });
      rank.check(outcome.kind == "Mismatch", "a call after the mismatch: " + outcome.kind);
    }
  });
  for (const Result& rank : ranks) {
    EXPECT_EQ(rank.get("call"), "Mismatch");
    EXPECT_EQ(rank.get("call.message"), ranks[0].get("call.message"));
  }
}

// Ranks far from each other in calls without waits: the mismatch is found at the next wait.
TEST(Mismatch, OfCallsThatWaitForNobodyIsFoundLater) {
  const auto ranks = run_job({.size = 2}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    std::vector<float> x(2);
    rank.attempt("call", [&] {
      // Rank 1 makes one broadcast less.
      for (int i = 0; i < 40; ++i) {
        if (rank.rank() == 0 || i != 20) comm.broadcast(x, {.root = 0});
      }
      for (;;) comm.barrier();
    });
  });
  EXPECT_EQ(ranks[0].get("call"), "Mismatch");
  EXPECT_EQ(ranks[1].get("call"), "Mismatch");
  EXPECT_EQ(ranks[0].get("call.message"), ranks[1].get("call.message"));
}

// The root gave its part long ago, and has called more since.
TEST(Mismatch, FarBehindARootNamesBothSides) {
  for (const std::size_t count : {4, 200, 900}) {
    SCOPED_TRACE(count);
    const auto ranks = run_job({.size = 3}, [&](Rank& rank) {
      World world = rank.join();
      auto& comm = world.communicator();
      std::vector<float> x(count);
      rank.attempt("call", [&] {
        if (rank.rank() == 1) {
          rank.await(0, 1);
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          comm.all_reduce(x);
        }
        for (int i = 0; i < 100; ++i) {
          comm.broadcast(x, {.root = 0});
          if (rank.rank() == 0 && i == 2) rank.mark(0);
        }
      });
    });
    for (const Result& rank : ranks) {
      EXPECT_EQ(rank.get("call"), "Mismatch");
      const std::string message = rank.get("call.message");
      EXPECT_NE(message.find("all_reduce #1"), std::string::npos) << message;
      EXPECT_NE(message.find("broadcast #1 "), std::string::npos) << message;
    }
  }
}

TEST(Mismatch, OfMessagesNamesBothSides) {
  struct Sent {
    std::size_t count;
    bool integers;
  };
  for (const Sent sent : {Sent{5, false}, Sent{3, false}, Sent{4, true}, Sent{1 << 20, false}}) {
    for (const bool receives_first : {true, false}) {
      const auto ranks = run_job({.size = 2}, [&](Rank& rank) {
        World world = rank.join();
        auto& comm = world.communicator();
        std::vector<float> floats(std::max<std::size_t>(sent.count, 4));
        std::vector<std::int32_t> integers(4);
        if (rank.rank() == 0) {
          if (!receives_first) rank.await(0, 1);
          rank.mark(1);
          rank.attempt("call", [&] {
            comm.recv(std::span(floats).first(4), 1);
            for (;;) comm.barrier();
          });
        } else {
          if (receives_first) rank.await(1, 1);
          rank.mark(0);
          rank.attempt("call", [&] {
            if (sent.integers) comm.send(integers, 0);
            if (!sent.integers) comm.send(std::span(floats).first(sent.count), 0);
            for (;;) comm.barrier();
          });
        }
      });
      for (const Result& rank : ranks) {
        EXPECT_EQ(rank.get("call"), "Mismatch");
        EXPECT_EQ(rank.get("call.message"), ranks[0].get("call.message"));
        const std::string expected =
            fmt::format("{}[{}]", sent.integers ? "int32" : "float32", sent.count);
        EXPECT_NE(rank.get("call.message").find(expected), std::string::npos)
            << rank.get("call.message");
        EXPECT_TRUE(rank.get("call.message")
                        .ends_with("; give the receive an array as it is sent, or a longer one and "
                                   "allow_shorter"))
            << rank.get("call.message");
      }
    }
  }
}

// --- Calls in which no rank waits for another ---------------------------------------------------

// The last call of all ranks, whose data no rank has to compare.
struct LastCall {
  const char* name;
  void (*call)(Communicator& comm, std::span<float> x, std::span<float> parts);
};

int next(const Communicator& comm) { return (comm.rank() + 1) % comm.size(); }

const LastCall kLastCalls[] = {
    {"broadcast",
     [](Communicator& comm, std::span<float> x, std::span<float>) {
       comm.broadcast(x, {.root = comm.rank()});
     }},
    {"scatter",
     [](Communicator& comm, std::span<float> x, std::span<float> parts) {
       comm.scatter(parts, x, {.root = comm.rank()});
     }},
    {"reduce",
     [](Communicator& comm, std::span<float> x, std::span<float>) {
       comm.reduce(x, {.root = next(comm)});
     }},
    {"gather",
     [](Communicator& comm, std::span<float> x, std::span<float>) {
       comm.gather(x, {.root = next(comm)});
     }},
    {"of two kinds",
     [](Communicator& comm, std::span<float> x, std::span<float>) {
       if (comm.rank() == 0) return comm.broadcast(x, {.root = 0});
       comm.reduce(x, {.root = 0});
     }},
    {"of two counts",
     [](Communicator& comm, std::span<float> x, std::span<float>) {
       if (comm.rank() == 0) return comm.broadcast(x, {.root = 0});
       comm.reduce(x.first(x.size() - 1), {.root = 0});
     }},
    {"of two prefixes",
     [](Communicator& comm, std::span<float> x, std::span<float>) {
       if (comm.rank() == 0) return comm.exscan(x);
       comm.scan(x);
     }},
};

enum class LastBy { kClose, kExit, kCloseOfAGroup };

void make_last_call(Rank& rank, World& world, const LastCall& last, std::size_t count, LastBy by) {
  Communicator group = world.communicator().duplicate();
  Communicator& comm = by == LastBy::kCloseOfAGroup ? group : world.communicator();
  std::vector<float> x(count);
  std::vector<float> parts(count * static_cast<std::size_t>(rank.size()));
  comm.barrier();
  const Outcome called = rank.attempt("call", [&] { last.call(comm, x, parts); });
  if (!called.ok()) return;
  if (by == LastBy::kExit) exit(0);
  rank.attempt("call", [&] {
    if (by == LastBy::kCloseOfAGroup) group.close();
    world.close();
  });
}

void expect_difference(const std::vector<Result>& ranks, LastBy by) {
  int found = 0;
  for (const Result& rank : ranks) {
    EXPECT_TRUE(rank.exited(0) || (by == LastBy::kExit && rank.exited(1))) << rank.status;
    if (by == LastBy::kExit && rank.get("call") == "ok") {
      found += rank.exited(1) ? 1 : 0;
    } else if (rank.get("call") == "Mismatch") {
      const std::string message = rank.get("call.message");
      EXPECT_NE(message.find("called different things in call #"), std::string::npos) << message;
      ++found;
    }
  }
  EXPECT_GE(found, 1);
}

TEST(Mismatch, OfLastCallsIsFoundAtTheEnd) {
  for (const LastCall& last : kLastCalls) {
    for (const char* engine : {"shm", "algorithm"}) {
      for (const std::size_t count : {std::size_t{4}, kLarge}) {
        for (const LastBy by : {LastBy::kClose, LastBy::kExit, LastBy::kCloseOfAGroup}) {
          SCOPED_TRACE(fmt::format(
              "{} of {}, engine {}, end {}", last.name, count, engine, static_cast<int>(by)));
          const auto ranks = run_job({.size = 3, .engines = {engine}},
                                     [&](Rank& rank) {
                                       World world = rank.join();
                                       make_last_call(rank, world, last, count, by);
                                     },
                                     {0, 1, 2});
          expect_difference(ranks, by);
        }
      }
    }
  }
}

class MismatchBetweenHosts : public PretendedHosts {};

TEST_F(MismatchBetweenHosts, OfLastCallsIsFoundAtTheEnd) {
  for (const LastCall& last : kLastCalls) {
    for (const LastBy by : {LastBy::kClose, LastBy::kExit}) {
      SCOPED_TRACE(fmt::format("{}, end {}", last.name, static_cast<int>(by)));
      const auto ranks = run_job({.size = 2},
                                 [&](Rank& rank) {
                                   World world = join(rank, each_alone);
                                   make_last_call(rank, world, last, 4, by);
                                 },
                                 {0, 1});
      expect_difference(ranks, by);
    }
  }
}

// The ranks that end first know nothing of the others' last calls, and need not.
TEST(Mismatch, IsNotMadeOfRanksThatEndEarly) {
  const auto ranks = run_job({.size = 3}, [](Rank& rank) {
    World world = rank.join();
    std::vector<float> x(4);
    rank.attempt("call", [&] {
      world.communicator().broadcast(x, {.root = 0});
      if (rank.rank() == 2) rank.await(0, 2);
      world.close();
      rank.mark(0);
    });
  });
  for (const Result& rank : ranks) EXPECT_EQ(rank.get("call"), "ok") << rank.get("call.message");
}

}  // namespace
}  // namespace hocket::multiprocess
