// Ranks that wait for each other learn of it at once, and ranks that merely wait do not.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "ranks.h"

namespace hocket::multiprocess {
namespace {

using std::chrono::milliseconds;
using Call = std::function<void(Communicator&)>;

constexpr std::size_t kLong = 1 << 18;  // floats: sent only when the other side receives
constexpr milliseconds kLate{300};

// A call of each rank. `circle`: the ranks that wait for each other; none if all calls end. Ranks
// that wait for these are named as well if they came before the error.
struct Case {
  const char* name;
  int size;
  std::vector<int> circle;
  Call call;
};

void receive(Communicator& comm, int source) {
  std::vector<float> in(3);
  comm.recv(in, source);
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"both receive", 2, {0, 1}, [](Communicator& c) { receive(c, 1 - c.rank()); }},
      {"a circle of three", 3, {0, 1, 2}, [](Communicator& c) { receive(c, (c.rank() + 1) % 3); }},
      {"both send what is long",
       2,
       {0, 1},
       [](Communicator& c) { c.send(std::vector<float>(kLong), 1 - c.rank()); }},
      {"a receive and a barrier",
       2,
       {0, 1},
       [](Communicator& c) { c.rank() == 0 ? receive(c, 1) : c.barrier(); }},
      {"all receive from anybody", 3, {0, 1, 2}, [](Communicator& c) { receive(c, kAnySource); }},
      {"a probe and a receive",
       2,
       {0, 1},
       [](Communicator& c) {
         if (c.rank() == 0) return receive(c, 1);
         static_cast<void>(c.probe(0));
       }},
      {"a probe and a split",
       2,
       {0, 1},
       [](Communicator& c) {
         if (c.rank() == 0) return static_cast<void>(c.probe(1));
         static_cast<void>(c.split({.color = 0}));
       }},
      {"a receive and a duplicate",
       2,
       {0, 1},
       [](Communicator& c) {
         if (c.rank() == 0) return receive(c, 1);
         static_cast<void>(c.duplicate());
       }},
      {"a receive and a new group",
       3,
       {0, 1},
       [](Communicator& c) {
         if (c.rank() == 0) return receive(c, 1);
         static_cast<void>(c.new_group(std::vector<int>{0, 2}));
       }},
      {"a receive and a group of each host",
       2,
       {0, 1},
       [](Communicator& c) { c.rank() == 0 ? receive(c, 1) : static_cast<void>(c.intra_node()); }},
      {"a receive and a split of several",
       3,
       {1, 2},
       [](Communicator& c) {
         if (c.rank() == 2) return receive(c, 1);
         static_cast<void>(c.split({.color = c.rank()}));
       }},
      {"one waits for itself",
       2,
       {0},
       [](Communicator& c) { c.rank() == 0 ? receive(c, 0) : c.barrier(); }},
      {"another tag",
       2,
       {0, 1},
       [](Communicator& c) {
         std::vector<float> array(kLong);
         if (c.rank() == 0) return c.send(array, 1, {.tag = 1});
         c.recv(array, 0, {.tag = 2});
       }},
      {"a root that receives first",
       3,
       {0, 1},
       [](Communicator& c) {
         std::vector<float> array(kLong);
         if (c.rank() == 0) return receive(c, 1);
         c.broadcast(array, {.root = 0});
       }},
      {"exchanges with the wrong neighbour",
       3,
       {0, 1, 2},
       [](Communicator& c) {
         std::vector<float> out(kLong), in(kLong);
         c.send_recv(out, (c.rank() + 1) % 3, in, (c.rank() + 1) % 3);
       }},
  };
  return all;
}

TEST(Deadlock, IsToldAtOnceToAll) {
  for (const Case& one : cases()) {
    const auto ranks = run_job({.size = one.size}, [&](Rank& rank) {
      World world = rank.join();
      Communicator& comm = world.communicator();
      comm.barrier();
      rank.attempt("call", [&] { one.call(comm); });
      rank.attempt("later", [&] { comm.barrier(); });
      rank.attempt("rebuilt", [&] { comm.rebuild().barrier(); });
    });
    for (const auto& rank : ranks) {
      EXPECT_EQ(rank.get("call"), "DeadlockError") << one.name << ": " << rank.get("call.message");
      const std::string named = rank.get("call.missing");
      for (const int member : one.circle) {
        EXPECT_NE(named.find(std::to_string(member)), std::string::npos)
            << one.name << ": " << named;
      }
      EXPECT_EQ(rank.get("later"), "DeadlockError") << one.name;
      EXPECT_EQ(rank.get("rebuilt"), "ok") << one.name << ": " << rank.get("rebuilt.message");
    }
  }
}

TEST(Deadlock, NamesTheRanksAndTheirCalls) {
  const auto ranks = run_job({.size = 4}, [](Rank& rank) {
    World world = rank.join();
    Communicator& comm = world.communicator();
    rank.attempt("call", [&] {
      if (comm.rank() == 0) return comm.barrier();
      if (comm.rank() == 1) return receive(comm, 0);
      rank.await(0, 2);
      comm.barrier();
    });
    rank.mark(0);
  });
  for (const auto& rank : ranks) {
    const std::string text = rank.get("call.message");
    EXPECT_EQ(rank.get("call"), "DeadlockError");
    EXPECT_EQ(rank.get("call.missing"), "0,1");
    EXPECT_NE(text.find("ranks 0, 1 wait for each other on world"), std::string::npos) << text;
    EXPECT_NE(text.find("rank 0 in barrier #1, rank 1 in recv of float32[3] from rank 0 tag 0"),
              std::string::npos)
        << text;
  }
}

TEST(Deadlock, IsToldToThreads) {
  for (const Case& one : cases()) {
    const Outcome outcome = outcome_of([&] { run_threads(one.size, one.call); });
    EXPECT_EQ(outcome.kind, "DeadlockError") << one.name << ": " << outcome.message;
  }
}

// Calls that end by themselves, though a rank waits for long, or for one that waits itself.
const std::vector<Case>& waits() {
  static const std::vector<Case> all = {
      {"a late sender",
       2,
       {},
       [](Communicator& c) {
         if (c.rank() == 0) return receive(c, 1);
         std::this_thread::sleep_for(kLate);
         c.send(std::vector<float>(3), 0);
       }},
      {"a chain that ends",
       3,
       {},
       [](Communicator& c) {
         if (c.rank() < 2) receive(c, c.rank() == 0 ? 1 : kAnySource);
         if (c.rank() == 2) std::this_thread::sleep_for(kLate);
         if (c.rank() > 0) c.send(std::vector<float>(3), c.rank() - 1);
       }},
      {"more small messages than there is room for",
       2,
       {},
       [](Communicator& c) {
         std::vector<float> array(256);
         if (c.rank() == 0) {
           for (int i = 0; i < 2000; ++i) c.send(array, 1, {.tag = 1});
           c.send(array, 1, {.tag = 2});
           return;
         }
         std::this_thread::sleep_for(kLate);
         c.recv(array, 0, {.tag = 2});
         for (int i = 0; i < 2000; ++i) c.recv(array, 0, {.tag = 1});
       }},
      {"a long message for one that is late",
       2,
       {},
       [](Communicator& c) {
         std::vector<float> array(kLong * 16);
         for (int i = 0; i < 3; ++i) {
           std::this_thread::sleep_for(milliseconds(c.rank() == i % 2 ? 0 : 60));
           if (c.rank() == 0) c.send(array, 1);
           if (c.rank() == 1) c.recv(array, 0);
         }
       }},
  };
  return all;
}

TEST(Deadlock, IsNotWhatEndsByItself) {
  for (const Case& one : waits()) {
    const auto ranks = run_job({.size = one.size}, [&](Rank& rank) {
      World world = rank.join();
      rank.attempt("call", [&] {
        one.call(world.communicator());
        world.communicator().barrier();
      });
    });
    for (const auto& rank : ranks) {
      EXPECT_EQ(rank.get("call"), "ok") << one.name << ": " << rank.get("call.message");
    }
  }
}

// A communicator does not know the ranks that calls of another one wait for.
TEST(Deadlock, AcrossCommunicatorsIsLeftToTheDeadline) {
  const auto ranks = run_job({.size = 2}, [](Rank& rank) {
    World world = rank.join();
    Communicator other = world.communicator().duplicate();
    Communicator& mine = rank.rank() == 0 ? world.communicator() : other;
    rank.attempt("call", [&] { mine.barrier({.deadline = milliseconds(400)}); });
    rank.mark(0);
    rank.await(0, 2);  // so that neither leaves while the other waits
  });
  for (const auto& rank : ranks) EXPECT_EQ(rank.get("call"), "DeadlineExceeded");
}

}  // namespace
}  // namespace hocket::multiprocess
