// Hosts learn of each other's failures: from the right rank, soon, and the same on all ranks.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "collectives.h"
#include "core_file.h"
#include "pretended_hosts.h"

namespace hocket::multiprocess {
namespace {

using std::chrono::seconds;

int all_together(int /*rank*/) { return 0; }

class HostFailures : public PretendedHosts {};

// Each takes the other for the root of a gather, and sends its part. Then it goes on to calls that
// wait for no rank, and one is far ahead.
TEST_F(HostFailures, DifferentRootsShowThoughNobodyWaits) {
  for (const int between : {0, 1000}) {
    SCOPED_TRACE(between);
    const auto ranks = run_job({.size = 2}, [between](Rank& rank) {
      World world = join(rank, each_alone);
      auto& comm = world.communicator();
      comm.barrier();
      const auto pause = [](int ms) { std::this_thread::sleep_for(std::chrono::milliseconds(ms)); };
      rank.attempt("call", [&] {
        std::vector<float> x(3, 1.0F);
        std::vector<float> all(6);
        const auto gather = [&](int root) {
          comm.gather(x, rank.rank() == root ? ArrayView(all) : ArrayView(), {.root = root});
        };
        gather(1 - rank.rank());
        if (rank.rank() == 1) pause(between == 0 ? 0 : 300);
        for (int i = 0; i < between; ++i) gather(1);
        for (int i = 0; i < 200; ++i) {
          if (rank.rank() == i % 2) pause(10);
          gather(1 - i % 2);
        }
      });
      rank.attempt("later", [&] { comm.barrier(); });
    });
    for (const Result& result : ranks) {
      const std::string message = result.get("call.message");
      EXPECT_EQ(result.get("call"), "Mismatch") << message;
      EXPECT_EQ(result.get("later"), "Mismatch") << result.get("later.message");
      EXPECT_NE(message.find("rank 0"), std::string::npos) << message;
      EXPECT_NE(message.find("rank 1"), std::string::npos) << message;
      const std::string shown = between == 0 ? "root 0" : "things";
      EXPECT_NE(message.find(shown), std::string::npos) << message;
    }
  }
}

// The cause of a group's end is sent, even if its rank closes the group at once. Meanwhile the
// speaker of its host is busy with the end of another group.
TEST_F(HostFailures, WhatEndedAGroupIsToldThoughItIsClosedAtOnce) {
  constexpr int kRounds = 300;
  const auto ranks = run_job({.size = 3}, [](Rank& rank) {
    World world = join(rank, in_pairs);
    auto& comm = world.communicator();
    for (int round = 0; round < kRounds; ++round) {
      std::optional<Communicator> other(comm.duplicate());
      Communicator group = comm.new_group(std::vector<int>{1, 2});
      comm.barrier();
      if (rank.rank() == 1) {
        other.reset();
        const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(round);
        while (std::chrono::steady_clock::now() < until) {
        }
        group.abort("enough");
        group.close();
      } else if (rank.rank() == 2) {
        const Outcome end = outcome_of([&] { group.barrier({.deadline = seconds(10)}); });
        if (end.kind != "Aborted" || end.message.find("enough") == std::string::npos) {
          rank.check(false, fmt::format("round {}: {}: {}", round, end.kind, end.message));
          break;
        }
      }
    }
  });
}

// A rank that closes a communicator has left it. The others hear of that instead of waiting, as
// soon as they need that rank.
TEST_F(HostFailures, WhoClosesAGroupIsNotWaitedFor) {
  for (const Placement placement : {Placement(all_together), Placement(in_pairs)}) {
    SCOPED_TRACE(placement(2));
    const auto ranks = run_job({.size = 4}, [placement](Rank& rank) {
      World world = join(rank, placement);
      Communicator group = world.communicator().duplicate();
      int x = rank.rank();
      group.all_reduce(scalar(x));
      if (rank.rank() == 0) {
        // The others end this late, and well.
        group.broadcast(scalar(x), {.root = 0});
        group.close();
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        group.broadcast(scalar(x), {.root = 0});
        rank.check(x == 6, "the broadcast is wrong");
        rank.attempt("call", [&] { group.all_reduce(scalar(x), {.deadline = seconds(40)}); });
        rank.attempt("later", [&] { group.barrier({.deadline = seconds(40)}); });
      }
      world.communicator().barrier();
    });
    for (int i = 1; i < 4; ++i) {
      const Result& result = ranks[static_cast<std::size_t>(i)];
      for (const std::string call : {"call", "later"}) {
        const std::string message = result.get(call + ".message");
        EXPECT_EQ(result.get(call), "Aborted") << message;
        EXPECT_NE(message.find("rank 0 closed the communicator"), std::string::npos) << message;
      }
    }
  }
}

// The speaker of a host is stopped, and deadlines are shorter than the allowed silence. The other
// ranks of its host are still heard, and hear of others.
TEST_F(HostFailures, MatesOfAStoppedSpeakerAreNotMissing) {
  const JobOptions options{.size = 4, .environment = {{"HOCKET_SILENCE", "20"}}};
  const auto ranks = run_job(
      options,
      [](Rank& rank) {
        World world = join(rank, in_pairs);
        auto& comm = world.communicator();
        comm.barrier();
        rank.mark(0);
        rank.await(1, 1);  // one is stopped in here
        if (rank.rank() == 2) return;
        std::vector<float> all(4);
        rank.attempt(
            "call", [&] { comm.all_gather(std::vector<float>(1), all, {.deadline = seconds(3)}); });
        rank.mark(2);
        rank.await(3, 1);
      },
      {},
      [](const Watcher& watcher) {
        if (!watcher.await(0, 4)) return;
        watcher.signal(2, SIGSTOP);
        watcher.mark(1);
        watcher.await(2, 3);
        watcher.signal(2, SIGCONT);
        watcher.mark(3);
      });
  for (const int i : {0, 1, 3}) {
    const Result& rank = ranks[static_cast<std::size_t>(i)];
    EXPECT_EQ(rank.get("call"), "DeadlineExceeded") << rank.get("call.message");
    EXPECT_EQ(rank.get("call.missing"), "2") << rank.get("call.message");
  }
}

struct CoreFile {
  int victim;
  bool mate_waits;  // for who dumps core
  const char* folder;
};

// A rank of two pairs. No core file is complete before all others have finished.
void lose_to_a_core_file(const Rank& rank, const CoreFile& how) {
  World world = join(rank, in_pairs);
  Communicator& comm = world.communicator();
  std::vector<int> others;
  for (int i = 0; i < rank.size(); ++i) {
    if (i != how.victim) others.push_back(i);
  }
  Communicator apart = comm.new_group(others);
  std::vector<int> pid{static_cast<int>(getpid())};
  comm.broadcast(pid, {.root = how.victim});
  rank.mark(0);
  if (rank.rank() == how.victim) {
    rank.check(chdir(how.folder) == 0, "the folder for the core file");
    rank.check(allow_core_files(), "core files are not allowed");
    rank.await(1, 1);
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
  }
  const bool is_mate = in_pairs(rank.rank()) == in_pairs(how.victim);
  if (is_mate && !how.mate_waits) rank.await(2, 2);
  rank.attempt("recv", [&] { comm.recv(pid, how.victim, {.deadline = seconds(30)}); });
  rank.mark(2);
  rank.attempt("call", [&] { comm.barrier({.deadline = seconds(30)}); });
  Communicator next = comm.rebuild();
  rank.check(next.size() == 3, "the one that dumps core goes on");
  for (Communicator* each : {&next, &apart}) {
    const std::string wrong = wrong_results(*each, 1, 700);
    rank.check(wrong.empty(), wrong);
  }
  rank.check(dumps_core(pid[0]), "it was known only after the core file had been written");
  apart.barrier();
  rank.mark(3);
}

// The speaker of a host crashes. Its connections stay open while its memory is written to a file.
// Another rank of its host reports the death, and what follows, to the other host, whether or not
// it waits itself.
TEST_F(HostFailures, ASpeakerThatDumpsCoreIsToldOfByAMate) {
  if (core_pattern() != "core") GTEST_SKIP() << "core dumps go to " << core_pattern();
  char folder[] = "/tmp/hocket-core-XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  if (!HeldFolder(folder).is_held()) GTEST_SKIP() << "needs root, to hold up the core file";
  for (const int victim : {0, 2}) {
    for (const bool mate_waits : {true, false}) {
      SCOPED_TRACE(
          fmt::format("rank {}, whose mate {}", victim, mate_waits ? "waits" : "does not"));
      const auto ranks = run_job(
          // Long, so that no host is taken for silent meanwhile.
          {.size = 4, .environment = {{"HOCKET_SILENCE", "40"}}},
          [&](Rank& rank) { lose_to_a_core_file(rank, {victim, mate_waits, folder}); },
          {victim},
          [&](const Watcher& watcher) {
            if (!watcher.await(0, 4)) return;
            const HeldFolder held(folder);
            EXPECT_TRUE(held.is_held());
            watcher.mark(1);
            watcher.await(3, 3);
          });
      EXPECT_EQ(WTERMSIG(ranks[static_cast<std::size_t>(victim)].status), SIGSEGV);
      for (int i = 0; i < 4; ++i) {
        if (i == victim) continue;
        const Result& rank = ranks[static_cast<std::size_t>(i)];
        for (const std::string call : {"recv", "call"}) {
          const std::string message = rank.get(call + ".message");
          EXPECT_EQ(rank.get(call), "PeerDied") << message;
          EXPECT_EQ(rank.number(call + ".peer"), victim) << message;
          EXPECT_EQ(rank.number(call + ".signal"), SIGSEGV) << message;
        }
      }
    }
  }
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace hocket::multiprocess
