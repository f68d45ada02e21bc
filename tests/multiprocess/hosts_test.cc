// Ranks that take one machine for several hosts. Data within a host goes through shared memory;
// data between hosts through UCX and the hosts' lanes.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <thread>

#include "collectives.h"
#include "pretended_hosts.h"

namespace hocket::multiprocess {
namespace {

using std::chrono::seconds;

class Hosts : public PretendedHosts {};

void check_results(const Rank& rank, Communicator& comm) {
  for (int round = 0; round < 6; ++round) {
    const std::size_t count = round == 5 ? 300'000 : std::size_t{1} << (3 * round);
    rank.check(wrong_results(comm, round, count) == "", wrong_results(comm, round, count));
  }
}

TEST_F(Hosts, CollectivesAreRightHoweverRanksArePlaced) {
  for (const Placement placement : {in_pairs, in_turn, unequal, each_alone}) {
    run_job({.size = 4}, [placement](Rank& rank) {
      World world = join(rank, placement);
      auto& comm = world.communicator();
      check_results(rank, comm);
      int expected = 0;
      for (int i = 0; i < comm.size(); ++i) {
        expected += placement(i) == placement(rank.rank()) ? 1 : 0;
      }
      rank.check(comm.intra_node().size() == expected, "intra_node has the wrong size");
      check_results(rank, comm.intra_node());
      check_results(rank, comm.inter_node());
    });
  }
}

TEST_F(Hosts, WhoIsAloneMayAskForWhatReachesThem) {
  run_job({.size = 1, .engines = {"ucx"}}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    check_results(rank, comm);
    int got = 0;
    int sent = 7;
    comm.send_recv(scalar(sent), scalar(got), 0);
    rank.check(got == 7, "a message to itself is wrong");
  });
}

TEST_F(Hosts, GroupsAcrossThemComeAndGo) {
  run_job({.size = 4}, [](Rank& rank) {
    World world = join(rank, in_pairs);
    auto& comm = world.communicator();
    // More in all than there can be at once.
    for (int i = 0; i < 1200; ++i) {
      Communicator odd = comm.split({.color = rank.rank() % 2});
      int sum = rank.rank();
      if (i % 100 == 0) odd.all_reduce(scalar(sum));
      rank.check(i % 100 != 0 || sum == (rank.rank() % 2 == 0 ? 2 : 4), "a group's sum is wrong");
    }
    check_results(rank, comm);
  });
}

TEST_F(Hosts, MoreGroupsAtOnceThanThereCanBeAreRefused) {
  run_job({.size = 2, .segment_bytes = std::size_t{2} << 30}, [](Rank& rank) {
    World world = join(rank, each_alone);
    auto& comm = world.communicator();
    comm.set_deadline(seconds(50));
    for (int round = 0; round < 2; ++round) {
      std::vector<Communicator> open;
      const Outcome outcome = outcome_of([&] {
        while (open.size() < 1200) open.push_back(comm.duplicate());
      });
      rank.check(open.size() > 1000 && open.size() < 1024, fmt::format("{} groups", open.size()));
      rank.check(outcome.kind == "InvalidArgument", outcome.kind);
      rank.check(outcome.message.find("close some") != std::string::npos, outcome.message);
      if (!open.empty()) check_results(rank, open.back());
      // They can be had again once they are closed.
    }
    check_results(rank, comm);
  });
}

TEST_F(Hosts, RefusedGroupsTakeNoPlace) {
  run_job({.size = 2}, [](Rank& rank) {
    World world = join(rank, each_alone);
    auto& comm = world.communicator();
    for (int i = 0; i < 1100; ++i) {
      const Outcome outcome = outcome_of([&] {
        static_cast<void>(comm.new_group(std::vector<int>{0, rank.rank() == 0 ? 1 : 7}));
      });
      if (outcome.kind != "InvalidArgument") return rank.check(false, outcome.message);
    }
    Communicator group = comm.duplicate();
    check_results(rank, group);
  });
}

TEST_F(Hosts, MessagesFromAnybodyComeOnceAndInOrder) {
  run_job({.size = 4}, [](Rank& rank) {
    World world = join(rank, in_pairs);
    auto& comm = world.communicator();
    constexpr int kRounds = 40;
    const auto count = [](int round) {
      return round % 4 == 3 ? std::size_t{30'000} : std::size_t{3};
    };
    if (rank.rank() != 0) {
      for (int round = 0; round < kRounds; ++round) {
        comm.send(std::vector<int>(count(round), rank.rank() * 1000 + round), 0, {.tag = round});
      }
    } else {
      for (int round = 0; round < kRounds; ++round) {
        int seen = 0;
        for (int i = 1; i < comm.size(); ++i) {
          std::vector<int> in(count(round));
          const Received from = comm.recv(in, kAnySource, {.tag = round});
          rank.check(in == std::vector<int>(count(round), from.source * 1000 + round),
                     fmt::format("round {}: the message from {} is wrong", round, from.source));
          seen |= 1 << from.source;
        }
        rank.check(seen == 0b1110, "somebody's message came twice");
      }
    }
    comm.barrier();
  });
}

// All ranks of a job end at about the same time, including the hosts' speakers. One rank has yet to
// receive the data sent to it.
TEST_F(Hosts, ALateRankEndsItsLastCallWellAfterAllOthersHaveLeft) {
  for (int round = 0; round < 20; ++round) {
    run_job({.size = 4}, [round](Rank& rank) {
      World world = join(rank, in_turn);
      std::optional<Communicator> group;
      if (round % 2 == 1) group = world.communicator().duplicate();
      Communicator& comm = group ? *group : world.communicator();
      std::vector<float> x(1000, rank.rank() == 0 ? 1.0F : 0.0F);
      comm.barrier();
      if (rank.rank() == 3) std::this_thread::sleep_for(std::chrono::milliseconds(round));
      comm.broadcast(x, {.root = 0});
      rank.check(x.back() == 1.0F, "the broadcast is wrong");
      if (round % 4 > 1) comm.close();
    });
  }
}

// Ranks that return from `rebuild` first may use the result, and leave, before the last ranks of
// another host have returned.
TEST_F(Hosts, ALateRankEndsItsLastCallAfterARebuildWell) {
  for (int round = 0; round < 10; ++round) {
    SCOPED_TRACE(round);
    run_job({.size = 8}, [](Rank& rank) {
      World world = join(rank, in_pairs);
      int x = rank.rank();
      world.communicator().all_reduce(scalar(x));
      Communicator next = world.communicator().rebuild();
      next.broadcast(scalar(x), {.root = 0});
      rank.check(x == 28, "the broadcast is wrong");
    });
  }
}

// A rank refused the last call, or made a different one, and has ended before the others look. They
// had been told of it by then.
TEST_F(Hosts, WhatWasWrongWithACallIsKnownAfterItsRankHasLeft) {
  for (const bool refuses : {true, false}) {
    SCOPED_TRACE(refuses);
    const auto ranks = run_job({.size = 2}, [refuses](Rank& rank) {
      World world = join(rank, each_alone);
      auto& comm = world.communicator();
      std::vector<float> x(3);
      comm.all_reduce(x);
      if (rank.rank() == 0) {
        rank.attempt("call", [&] {
          if (refuses) comm.all_reduce(x, std::span(x).first(2));
          comm.broadcast(x, {.root = 0});
        });
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        rank.attempt("call", [&] { comm.all_reduce(x); });
      }
    });
    const std::string message = ranks[1].get("call.message");
    EXPECT_EQ(ranks[1].get("call"), refuses ? "InvalidArgument" : "Mismatch") << message;
    EXPECT_NE(message.find(refuses ? "rank 0 refused" : "broadcast #2"), std::string::npos)
        << message;
    EXPECT_EQ(ranks[0].get("call"), refuses ? "InvalidArgument" : "ok");
  }
}

// The same, but the rank closed the group and left just when its host's speaker had left. The
// others could not be told at that time.
TEST_F(Hosts, WhatWasWrongWithACallIsKnownThoughNobodyCouldBeToldInTime) {
  for (int round = 0; round < 20; ++round) {
    const bool refuses = round % 2 == 0;
    SCOPED_TRACE(round);
    const auto ranks = run_job({.size = 4}, [refuses](Rank& rank) {
      World world = join(rank, in_pairs);
      Communicator group = world.communicator().split({.color = rank.rank() == 0 ? 0 : 1});
      if (rank.rank() == 0) return;
      std::vector<float> x(3);
      if (rank.rank() == 1) {
        // Until its mate has left.
        outcome_of([&] { world.communicator().recv(std::span(x), 0); });
        rank.attempt("call", [&] {
          if (refuses) group.all_reduce(x, std::span(x).first(2));
          group.broadcast(x, {.root = 0});
        });
        // It may hear by now that the others called something else.
        rank.attempt("close", [&] { group.close(); });
      } else {
        rank.attempt("call", [&] { group.all_reduce(x); });
      }
    });
    for (int i = 2; i < 4; ++i) {
      EXPECT_EQ(ranks[i].get("call"), refuses ? "InvalidArgument" : "Mismatch")
          << ranks[i].get("call.message");
    }
    const std::string closed = ranks[1].get("close");
    EXPECT_TRUE(closed == "ok" || (!refuses && closed == "Mismatch"))
        << closed << ": " << ranks[1].get("close.message");
  }
}

TEST_F(Hosts, ADeathIsNamedOnAllOfThem) {
  for (int victim = 0; victim < 4; ++victim) {
    const auto ranks =
        run_job({.size = 4},
                [victim](Rank& rank) {
                  World world = join(rank, in_pairs);
                  auto& comm = world.communicator();
                  comm.barrier();
                  rank.mark(0);
                  rank.await(0, 4);  // what a rank sent last may die with it
                  if (rank.rank() == victim) raise(SIGKILL);
                  rank.attempt("call", [&] { comm.barrier({.deadline = seconds(30)}); });
                  rank.attempt("later", [&] { comm.barrier({.deadline = seconds(30)}); });
                },
                {victim});
    for (int i = 0; i < 4; ++i) {
      if (i == victim) continue;
      const Result& result = ranks[static_cast<std::size_t>(i)];
      for (const char* call : {"call", "later"}) {
        EXPECT_EQ(result.get(call), "PeerDied") << result.get(std::string(call) + ".message");
        EXPECT_EQ(result.number(std::string(call) + ".peer"), victim);
        EXPECT_EQ(result.number(std::string(call) + ".pid"),
                  ranks[static_cast<std::size_t>(victim)].pid);
      }
    }
  }
}

TEST_F(Hosts, SurvivorsOfOneThatSpokeForItsHostAreStillHeard) {
  const auto ranks =
      run_job({.size = 4},
              [](Rank& rank) {
                World world = join(rank, in_pairs);
                auto& comm = world.communicator();
                Communicator rest = comm.new_group(std::vector<int>{1, 3});
                Communicator others = comm.new_group(std::vector<int>{0, 3});
                comm.barrier();
                rank.mark(1);
                rank.await(1, 4);
                if (rank.rank() == 2) raise(SIGKILL);
                rank.attempt("first", [&] { comm.barrier({.deadline = seconds(30)}); });
                if (rest.is_member()) {
                  for (int i = 0; i < 1100; ++i) rest.barrier({.deadline = seconds(30)});
                  check_results(rank, rest);
                }
                // Rank 3 speaks for its host now, and dies in its turn.
                rank.mark(0);
                rank.await(0, 3);
                if (rank.rank() == 3) raise(SIGKILL);
                if (rank.rank() == 0) {
                  rank.attempt("second", [&] { others.barrier({.deadline = seconds(30)}); });
                }
              },
              {2, 3});
  EXPECT_EQ(ranks[0].get("first"), "PeerDied");
  EXPECT_EQ(ranks[0].number("first.peer"), 2);
  EXPECT_EQ(ranks[0].get("second"), "PeerDied") << ranks[0].get("second.message");
  EXPECT_EQ(ranks[0].number("second.peer"), 1);  // in that group
}

TEST_F(Hosts, AnAbortARefusalAndAMismatchAreHeardOfEverywhere) {
  const auto ranks = run_job({.size = 4}, [](Rank& rank) {
    World world = join(rank, in_pairs);
    auto& comm = world.communicator();
    Communicator one = comm.duplicate();
    Communicator other = comm.duplicate();
    std::vector<float> three(3);
    std::vector<float> four(4);
    rank.attempt("refusal", [&] {
      if (rank.rank() == 3) {
        comm.all_reduce(three, four);
      } else {
        comm.all_reduce(three, {.deadline = seconds(30)});
      }
    });
    check_results(rank, comm);
    rank.attempt("mismatch", [&] {
      if (rank.rank() == 1) {
        one.broadcast(four, {.root = 1, .deadline = seconds(30)});
        one.barrier({.deadline = seconds(30)});  // its part of the broadcast may have ended well
      } else {
        one.all_reduce(three, {.deadline = seconds(30)});
      }
    });
    if (rank.rank() == 2) other.abort("enough");
    rank.attempt("abort", [&] { other.barrier({.deadline = seconds(30)}); });
    comm.barrier();
  });
  for (const Result& result : ranks) {
    EXPECT_EQ(result.get("refusal"), "InvalidArgument") << result.get("refusal.message");
    EXPECT_EQ(result.get("mismatch"), "Mismatch") << result.get("mismatch.message");
    EXPECT_EQ(result.get("abort"), "Aborted") << result.get("abort.message");
    EXPECT_NE(result.get("abort.message").find("enough"), std::string::npos);
  }
}

TEST_F(Hosts, ADeadlineNamesWhoHadNotCome) {
  const auto ranks = run_job({.size = 4}, [](Rank& rank) {
    World world = join(rank, in_pairs);
    auto& comm = world.communicator();
    comm.barrier();
    if (rank.rank() == 3) {
      rank.await(0, 3);
    } else {
      rank.attempt("call", [&] { comm.barrier({.deadline = std::chrono::milliseconds(500)}); });
      rank.mark(0);
    }
  });
  for (int i = 0; i < 3; ++i) {
    const Result& result = ranks[static_cast<std::size_t>(i)];
    EXPECT_EQ(result.get("call"), "DeadlineExceeded") << result.get("call.message");
    EXPECT_EQ(result.get("call.missing"), "3") << result.get("call.message");
    EXPECT_EQ(result.get("call.calls"), "3: barrier #1 (finished)");
  }
}

TEST_F(Hosts, WhoIsThroughMayGo) {
  for (int round = 0; round < 5; ++round) {
    run_job({.size = 4}, [](Rank& rank) {
      World world = join(rank, in_pairs);
      auto& comm = world.communicator();
      std::vector<std::int64_t> array(20'000, 7 + rank.rank());
      // Everybody may leave as soon as its own part has gone out.
      comm.broadcast(array, {.root = 0});
      rank.check(array == std::vector<std::int64_t>(20'000, 7), "the broadcast is wrong");
    });
  }
}

TEST_F(Hosts, SymmetricMemoryIsOfOneHost) {
  const auto ranks = run_job({.size = 4}, [](Rank& rank) {
    World world = join(rank, in_pairs);
    auto& comm = world.communicator();
    rank.attempt("world", [&] { static_cast<void>(comm.symmetric().empty(10, DType::kFloat32)); });
    auto array = comm.intra_node().symmetric().empty(10, DType::kInt32);
    auto local = array.local();
    std::fill_n(static_cast<int*>(local.data()), 10, rank.rank());
    comm.all_reduce(local);  // between hosts it is an array like any other
    rank.check(static_cast<int*>(local.data())[9] == 6, "the sum is wrong");
    comm.barrier();
  });
  for (const Result& result : ranks) {
    EXPECT_EQ(result.get("world"), "InvalidArgument");
    EXPECT_NE(result.get("world.message").find("intra_node"), std::string::npos);
  }
}

// The speaker of a host is stopped, for longer than a host may be silent. Another rank speaks, and
// no rank loses the host's others. When it goes on, it is as if it had been slow.
TEST_F(Hosts, AStoppedSpeakerTakesNobodyAlong) {
  for (const std::vector<int>& stopped : {std::vector<int>{0}, std::vector<int>{0, 2}}) {
    SCOPED_TRACE(fmt::format("{} stopped", stopped.size()));
    const auto is_stopped = [&](int rank) {
      return std::find(stopped.begin(), stopped.end(), rank) != stopped.end();
    };
    const JobOptions options{.size = 6, .environment = {{"HOCKET_SILENCE", "1"}}};
    const auto ranks = run_job(
        options,
        [&](Rank& rank) {
          World world = join(rank, in_pairs);
          auto& comm = world.communicator();
          std::vector<int> going;
          for (int i = 0; i < rank.size(); ++i) {
            if (!is_stopped(i)) going.push_back(i);
          }
          Communicator living = comm.new_group(going);
          Communicator later = comm.duplicate();
          comm.barrier();
          rank.mark(0);
          if (is_stopped(rank.rank())) {
            rank.await(1, 1);  // stopped in here
          } else {
            living.set_deadline(seconds(30));
            const auto until = std::chrono::steady_clock::now() + seconds(12);
            for (int going_on = 1, round = 1; going_on != 0; ++round) {
              const std::string wrong = wrong_results(living, round, 300);
              rank.check(wrong.empty(), wrong);
              going_on = std::chrono::steady_clock::now() < until ? 1 : 0;
              living.all_reduce(scalar(going_on), {.op = ReduceOp::kMin});
            }
            // Across the hosts' lanes: a group's failure, and who is in which call.
            rank.attempt("late", [&] { comm.barrier({.deadline = seconds(2)}); });
            rank.mark(2);
            rank.await(1, 1);
          }
          later.set_deadline(seconds(40));
          for (int round = 0; round < 20; ++round) {
            const std::string wrong = wrong_results(later, round, 300);
            rank.check(wrong.empty(), "afterwards: " + wrong);
          }
        },
        {},
        [&](const Watcher& watcher) {
          if (!watcher.await(0, 6)) return;
          for (const int rank : stopped) watcher.signal(rank, SIGSTOP);
          watcher.await(2, 6 - static_cast<int>(stopped.size()));
          for (const int rank : stopped) watcher.signal(rank, SIGCONT);
          watcher.mark(1);
        });
    for (int i = 0; i < 6; ++i) {
      if (is_stopped(i)) continue;
      const Result& rank = ranks[static_cast<std::size_t>(i)];
      EXPECT_EQ(rank.get("late"), "DeadlineExceeded") << rank.get("late.message");
      EXPECT_EQ(rank.get("late.missing"), stopped.size() == 1 ? "0" : "0,2")
          << rank.get("late.message");
    }
  }
}

}  // namespace
}  // namespace hocket::multiprocess
