// Receives from any rank while one of the ranks that could have sent is dead or has left. Every way
// to wait for such a message is a row of one table, and is tried on every carrier of messages.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "hocket/object.h"
#include "pretended_hosts.h"

namespace hocket::multiprocess {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr int kVictim = 2;

struct Way {
  const char* name;
  void (*wait)(Communicator& comm);
};

const std::vector<Way>& ways() {
  static const std::vector<Way> all = {
      {"recv",
       [](Communicator& comm) {
         std::vector<int> in(3);
         comm.recv(in, kAnySource);
       }},
      {"recv of a long message",
       [](Communicator& comm) {
         std::vector<int> in(1'000'000);
         comm.recv(in, kAnySource);
       }},
      {"recv of any tag",
       [](Communicator& comm) {
         std::vector<int> in(3);
         comm.recv(in, kAnySource, {.tag = kAnyTag, .allow_shorter = true});
       }},
      {"recv_async",
       [](Communicator& comm) {
         std::vector<int> in(3);
         comm.recv_async(in, kAnySource).wait();
       }},
      {"recv behind a recv_async",
       [](Communicator& comm) {
         std::vector<int> first(3);
         std::vector<int> second(3);
         Work work = comm.recv_async(first, 1, {.tag = 5});
         comm.recv(second, kAnySource);
       }},
      {"probe", [](Communicator& comm) { comm.probe(kAnySource); }},
      {"probe_now",
       [](Communicator& comm) {
         while (!comm.probe_now(kAnySource)) std::this_thread::sleep_for(milliseconds(1));
       }},
      {"recv_object", [](Communicator& comm) { static_cast<void>(recv_object(comm, kAnySource)); }},
      {"send_recv",
       [](Communicator& comm) {
         std::vector<int> out(1);
         std::vector<int> in(3);
         comm.send_recv(out, 1, in, kAnySource);
       }},
      {"exchange",
       [](Communicator& comm) {
         std::vector<int> in(3);
         const Incoming one{in, kAnySource};
         comm.exchange({}, {&one, 1});
       }},
  };
  return all;
}

// Rank 0 waits in each way for a message that is never sent; rank 2 is killed meanwhile, or before.
// Rank 1 lives on, and hears of the death by a receive from rank 0, of the same group.
void expect_death_is_told(const std::vector<std::string>& engines, bool before, auto&& join) {
  for (const Way& way : ways()) {
    SCOPED_TRACE(fmt::format("{}, {} the wait", way.name, before ? "dead before" : "killed in"));
    const auto ranks = run_job(
        {.size = 3, .engines = engines},
        [&](Rank& rank) {
          World world = join(rank);
          auto& comm = world.communicator();
          comm.set_deadline(seconds(40));
          comm.barrier();
          rank.mark(0);
          if (rank.rank() == kVictim) {
            if (before) raise(SIGKILL);
            for (;;) std::this_thread::sleep_for(seconds(1));
          }
          if (before) std::this_thread::sleep_for(milliseconds(200));
          const auto begun = steady_clock::now();
          rank.attempt("call", [&] {
            if (rank.rank() == 0) return way.wait(comm);
            std::vector<int> in(1);
            comm.recv(in, 0, {.tag = 3});
          });
          rank.check(steady_clock::now() - begun < seconds(20), "the death was told late");
          Communicator next = comm.rebuild();
          std::vector<int> x{next.rank()};
          if (next.rank() == 1) next.send(x, 0);
          if (next.rank() == 0) next.recv(x, kAnySource);
          rank.check(next.size() == 2 && x[0] == 1, "after rebuild: a message is wrong");
        },
        {kVictim},
        [&](const Watcher& watcher) {
          watcher.await(0, 3);
          std::this_thread::sleep_for(milliseconds(30));
          if (!before) watcher.signal(kVictim, SIGKILL);
        });
    for (const int survivor : {0, 1}) {
      const Result& rank = ranks[static_cast<std::size_t>(survivor)];
      EXPECT_EQ(rank.get("call"), "PeerDied") << rank.get("call.message");
      EXPECT_EQ(rank.number("call.peer"), kVictim) << rank.get("call.message");
    }
  }
}

World join_plainly(const Rank& rank) { return rank.join(); }

TEST(AnySource, ADeathIsToldToEveryKindOfReceive) {
  expect_death_is_told({}, false, join_plainly);
  expect_death_is_told({}, true, join_plainly);
}

class AnySourceOfHosts : public PretendedHosts {};

TEST_F(AnySourceOfHosts, ADeathIsToldToEveryKindOfReceive) {
  for (const Placement placement : {in_turn, each_alone}) {
    expect_death_is_told({}, false, [&](const Rank& rank) { return join(rank, placement); });
  }
}

// An arrived message is received first, even if the dead rank sent it.
TEST(AnySource, MessagesThatHaveComeAreTakenFirst) {
  run_job({.size = 3},
          [](Rank& rank) {
            World world = rank.join();
            auto& comm = world.communicator();
            std::vector<int> x{rank.rank()};
            if (rank.rank() != 0) comm.send(x, 0);
            rank.mark(0);
            if (rank.rank() == kVictim) raise(SIGKILL);
            rank.await(0, 3);
            std::this_thread::sleep_for(milliseconds(200));
            if (rank.rank() == 1) {
              rank.await(1, 1);
              return;
            }
            int sum = 0;
            for (int i = 0; i < 2; ++i) {
              comm.recv(x, kAnySource);
              sum += x[0];
            }
            rank.check(sum == 3, "a message is wrong");
            const Outcome third = outcome_of([&] { comm.recv(x, kAnySource); });
            rank.check(third.kind == "PeerDied" && third.peer == kVictim, third.message);
            rank.mark(1);
          },
          {kVictim});
}

// A rank that leaves in order has sent what it had to send.
TEST(AnySource, WhoHasLeftInOrderEndsNoReceiveFromTheOthers) {
  run_job({.size = 3}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    comm.barrier();
    if (rank.rank() == 2) return world.close();
    std::vector<int> x{rank.rank()};
    if (rank.rank() == 1) {
      std::this_thread::sleep_for(milliseconds(300));
      comm.send(x, 0);
    } else {
      comm.recv(x, kAnySource);
      rank.check(x[0] == 1, "the message is wrong");
    }
  });
}

// One rank is killed, and others leave in order on account of that, with lower and higher numbers.
TEST(AnySource, TheKilledOneIsNamedAndNotWhoLeftAfterIt) {
  for (const int victim : {1, 2, 3}) {
    const auto ranks = run_job({.size = 4},
                               [&](Rank& rank) {
                                 World world = rank.join();
                                 auto& comm = world.communicator();
                                 comm.barrier();
                                 rank.mark(0);
                                 if (rank.rank() == victim) raise(SIGKILL);
                                 if (rank.rank() != 0) {
                                   std::this_thread::sleep_for(milliseconds(100));
                                   world.close();
                                   return rank.mark(1);
                                 }
                                 rank.await(1, 2);
                                 std::vector<int> x(1);
                                 rank.attempt("call", [&] { comm.recv(x, kAnySource); });
                               },
                               {victim});
    EXPECT_EQ(ranks[0].get("call"), "PeerDied") << ranks[0].get("call.message");
    EXPECT_EQ(ranks[0].number("call.peer"), victim) << ranks[0].get("call.message");
  }
}

}  // namespace
}  // namespace hocket::multiprocess
