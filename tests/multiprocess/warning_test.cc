// Warnings about waits that last unusually long. One rank names the missing rank, the call, and the
// missing rank's activity: once, and then at growing intervals. It also reports the end of the
// wait.
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include "pretended_hosts.h"
#include "ranks.h"

namespace hocket::multiprocess {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// hocket's log of this process, from now on.
class Log {
 public:
  Log() {
    char name[] = "/tmp/hocket-warning-XXXXXX";
    const int file = mkstemp(name);
    name_ = name;
    dup2(file, STDERR_FILENO);
    close(file);
  }
  ~Log() { unlink(name_.c_str()); }
  std::string text() const {
    std::ifstream file(name_);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  // Waits for a line that has all of `parts`; empty after ten seconds without.
  std::string await(const std::vector<std::string>& parts) const {
    for (int i = 0; i < 1000; ++i) {
      std::istringstream lines(text());
      for (std::string line; std::getline(lines, line);) {
        const auto is_in = [&](const std::string& part) { return has(line, part); };
        if (std::ranges::all_of(parts, is_in)) return line;
      }
      std::this_thread::sleep_for(milliseconds(10));
    }
    return {};
  }

 private:
  std::string name_;
};

JobOptions job_of(int size, const char* warn = "0.2") {
  return {.size = size, .environment = {{"HOCKET_WARN", warn}}};
}

// All lines of all ranks.
std::string all_of(const std::vector<Result>& ranks) {
  std::string text;
  for (const Result& rank : ranks) text += rank.get("log");
  return text;
}
std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(Warning, NamesAStoppedRankOnceAndThatItIsOver) {
  const auto ranks = run_job(
      job_of(4),
      [](Rank& rank) {
        const Log log;
        World world = rank.join();
        auto& comm = world.communicator();
        std::vector<double> x(12);
        comm.all_reduce(x, {.op = ReduceOp::kMax});
        rank.mark(0);
        rank.await(rank.rank() == 2 ? 1 : 2, 1);
        comm.barrier();
        rank.report("log", log.text());
      },
      {},
      [](const Watcher& watcher) {
        watcher.await(0, 4);
        watcher.signal(2, SIGSTOP);
        watcher.mark(2);
        std::this_thread::sleep_for(milliseconds(700));
        watcher.mark(1);
        watcher.signal(2, SIGCONT);
      });
  const std::string text = all_of(ranks);
  // At 0.2 s, 0.4 s, and perhaps 0.8 s.
  EXPECT_GE(count(text, "has waited"), 1u) << text;
  EXPECT_LE(count(text, "has waited"), 3u) << text;
  EXPECT_EQ(count(text, "has waited"), count(text, "in barrier #2 on world for rank 2")) << text;
  EXPECT_TRUE(has(text, fmt::format("for rank 2 (pid {})", ranks[2].pid))) << text;
  EXPECT_TRUE(has(text, "last seen in all_reduce #1 max float64[12] (finished)")) << text;
  EXPECT_TRUE(has(text, "now stopped by a signal")) << text;
  EXPECT_EQ(count(text, "barrier #2 on world has gone on after"), 1u) << text;
  // One rank speaks.
  int speakers = 0;
  for (const Result& rank : ranks) speakers += has(rank.get("log"), "has waited") ? 1 : 0;
  EXPECT_EQ(speakers, 1) << text;
}

TEST(Warning, NamesWhoSkippedACallAndWhereThatOneSleeps) {
  const auto ranks = run_job(job_of(3), [](Rank& rank) {
    const Log log;
    World world = rank.join();
    auto& comm = world.communicator();
    std::vector<float> x(5);
    comm.all_reduce(x);
    if (rank.rank() == 1) std::this_thread::sleep_for(milliseconds(700));
    if (rank.rank() != 1) rank.attempt("call", [&] { comm.all_reduce(x); });
    comm.close();
    rank.report("log", log.text());
  });
  const std::string text = all_of(ranks);
  EXPECT_TRUE(has(text, "in all_reduce #2 sum float32[5] on world for rank 1")) << text;
  EXPECT_TRUE(has(text, "now sleeping")) << text;
  EXPECT_TRUE(has(text, "has ended with an error after")) << text;
}

// Rank 0 has come before it stopped. No rank is missing, and the warning still names rank 0.
TEST(Warning, NamesARankThatStopsWithinACall) {
  const auto ranks = run_job(
      job_of(3),
      [](Rank& rank) {
        const Log log;
        World world = rank.join();
        auto& comm = world.communicator();
        comm.set_deadline(milliseconds(1500));
        std::vector<float> x(3'000'000);
        rank.attempt("call", [&] {
          for (;;) {
            comm.all_reduce(x);
            rank.mark(0);
          }
        });
        rank.mark(1);
        rank.report("log", log.text());
      },
      {},
      [](const Watcher& watcher) {
        watcher.await(0, 6);
        watcher.signal(0, SIGSTOP);
        watcher.await(1, 2);
        watcher.signal(0, SIGCONT);
      });
  const std::string text = all_of(ranks);
  EXPECT_TRUE(has(text, fmt::format("for rank 0 (pid {})", ranks[0].pid))) << text;
  EXPECT_TRUE(has(text, "stopped by a signal")) << text;
  EXPECT_EQ(ranks[1].get("call"), "DeadlineExceeded");
}

// Rank 0 waits for rank 1 in one group, and rank 1 for rank 2 in another: rank 2 is the cause.
TEST(Warning, FollowsAChainToItsEnd) {
  const auto ranks = run_job(job_of(3), [](Rank& rank) {
    const Log log;
    World world = rank.join();
    auto& comm = world.communicator();
    auto first = comm.new_group(std::array{0, 1});
    auto second = comm.new_group(std::array{1, 2});
    if (rank.rank() == 2) std::this_thread::sleep_for(milliseconds(900));
    if (rank.rank() != 0) second.barrier();
    if (rank.rank() != 2) first.barrier();
    rank.report("log", log.text());
  });
  EXPECT_EQ(count(ranks[0].get("log"), "has waited"), 0u) << ranks[0].get("log");
  EXPECT_GE(count(ranks[1].get("log"), "has waited"), 1u) << ranks[1].get("log");
  EXPECT_TRUE(has(ranks[1].get("log"), fmt::format("(pid {})", ranks[2].pid)));
}

TEST(Warning, SaysThatTwoWaitForEachOther) {
  const auto ranks = run_job(job_of(2), [](Rank& rank) {
    const Log log;
    World world = rank.join();
    auto a = world.communicator().duplicate();
    auto b = world.communicator().duplicate();
    std::vector<float> x(10);
    rank.attempt(
        "call", [&] { (rank.rank() == 0 ? a : b).all_reduce(x, {.deadline = milliseconds(900)}); });
    rank.report("log", log.text());
    rank.mark(0);
    rank.await(0, 2);
  });
  EXPECT_TRUE(has(ranks[0].get("log"), "ranks 0, 1 of the job wait for each other"))
      << ranks[0].get("log");
  EXPECT_EQ(count(ranks[1].get("log"), "has waited"), 0u) << ranks[1].get("log");
}

TEST(Warning, SpeaksForMessagesAndForWork) {
  const auto ranks = run_job(job_of(2), [](Rank& rank) {
    const Log log;
    World world = rank.join();
    auto& comm = world.communicator();
    std::vector<int> x(3);
    if (rank.rank() == 0) {
      comm.recv(x, 1, {.tag = 4});
      Work work = comm.all_reduce_async(x);
      work.wait();
    } else {
      std::this_thread::sleep_for(milliseconds(600));
      comm.send(x, 0, {.tag = 4});
      std::this_thread::sleep_for(milliseconds(600));
      comm.all_reduce(x);
    }
    rank.report("log", log.text());
  });
  const std::string text = ranks[0].get("log");
  EXPECT_TRUE(has(text, "in recv of int32[3] from rank 1 tag 4 on world for rank 1")) << text;
  EXPECT_TRUE(has(text, "in all_reduce #1 sum int32[3] on world for rank 1")) << text;
  EXPECT_EQ(count(text, "has gone on after"), 2u) << text;
}

struct FromAny {
  const char* name;
  int size;
  const char* call;
  void (*receive)(Communicator&, std::vector<int>&);
  std::vector<std::string> names;  // in the warning, in this order
};
void PrintTo(const FromAny& a, std::ostream* out) { *out << a.name; }

class WarningFromAny : public testing::TestWithParam<FromAny> {};

// The last rank sends; the others wait for rank 0, which is no circle while the last one may send.
TEST_P(WarningFromAny, NamesAllThatMaySend) {
  const FromAny& a = GetParam();
  const auto ranks = run_job(job_of(a.size), [&](Rank& rank) {
    const Log log;
    World world = rank.join();
    auto& comm = world.communicator();
    std::vector<int> x(3);
    if (rank.rank() == 0) {
      std::thread warned([&] {
        log.await({a.call});
        rank.mark(1);
      });
      a.receive(comm, x);
      warned.join();
      for (int i = 1; i < a.size - 1; ++i) comm.send(x, i);
    } else if (rank.rank() == a.size - 1) {
      rank.await(1, 1);
      comm.send(x, 0);
    } else {
      comm.recv(x, 0);
    }
    rank.report("log", log.text());
    rank.mark(0);
    rank.await(0, a.size);
  });
  const std::string text = ranks[0].get("log");
  EXPECT_TRUE(has(text, a.call)) << text;
  std::size_t at = 0;
  for (const std::string& name : a.names) {
    at = text.find(name, at);
    ASSERT_NE(at, std::string::npos) << name << " in " << text;
  }
  EXPECT_EQ(count(all_of(ranks), "in a circle"), 0u) << all_of(ranks);
}

INSTANTIATE_TEST_SUITE_P(
    Warning,
    WarningFromAny,
    testing::Values(
        FromAny{"one_other",
                2,
                "recv of int32[3] from any rank",
                [](Communicator& c, std::vector<int>& x) { c.recv(x, kAnySource); },
                {" for rank 1 (pid "}},
        FromAny{"two_others",
                3,
                "recv of int32[3] from any rank",
                [](Communicator& c, std::vector<int>& x) { c.recv(x, kAnySource); },
                {" for rank 1 (pid ", "; or for rank 2 (pid "}},
        FromAny{"async",
                3,
                "recv of int32[3] from any rank",
                [](Communicator& c, std::vector<int>& x) { c.recv_async(x, kAnySource).wait(); },
                {" for rank 1 (pid ", "; or for rank 2 (pid "}},
        FromAny{"probe",
                3,
                "probe from any rank",
                [](Communicator& c, std::vector<int>& x) { c.recv(x, c.probe(kAnySource).source); },
                {" for rank 1 (pid ", "; or for rank 2 (pid "}},
        FromAny{"many",
                5,
                "recv of int32[3] from any rank",
                [](Communicator& c, std::vector<int>& x) { c.recv(x, kAnySource); },
                {" for rank 1 (pid ", "; or for rank 3 (pid ", "; or for 1 more"}}),
    [](const auto& each) { return std::string(each.param.name); });

TEST(Warning, IsQuietWhenAllIsWellAndWhenItIsOff) {
  for (const char* warn : {"30", "0"}) {
    const auto ranks = run_job(job_of(3, warn), [](Rank& rank) {
      const Log log;
      World world = rank.join();
      auto& comm = world.communicator();
      std::vector<float> x(100);
      for (int i = 0; i < 100; ++i) comm.all_reduce(x);
      if (rank.rank() == 1) std::this_thread::sleep_for(milliseconds(500));
      comm.barrier();
      rank.report("log", "log:" + log.text());
    });
    for (const Result& rank : ranks) EXPECT_EQ(rank.get("log"), "log:");
  }
}

// The deadline comes first: its error says the same of the process.
TEST(Warning, IsLeftToADeadlineThatIsShorter) {
  const auto ranks = run_job(
      job_of(2, "30"),
      [](Rank& rank) {
        World world = rank.join();
        rank.mark(0);
        rank.await(rank.rank() == 1 ? 1 : 2, 1);
        rank.attempt("call",
                     [&] { world.communicator().barrier({.deadline = milliseconds(300)}); });
        rank.mark(3);
      },
      {},
      [](const Watcher& watcher) {
        watcher.await(0, 2);
        watcher.signal(1, SIGSTOP);
        watcher.mark(2);
        watcher.await(3, 1);
        watcher.mark(1);
        watcher.signal(1, SIGCONT);
      });
  EXPECT_TRUE(has(ranks[0].get("call.message"), ", its process stopped by a signal"))
      << ranks[0].get("call.message");
}

class WarningHosts : public PretendedHosts {};

// Ranks 0 and 1 are one host, 2 and 3 another. Only the rank on the same host names rank 3.
TEST_F(WarningHosts, HasTheHostOfTheLateRankSpeak) {
  const auto ranks = run_job(job_of(4, "0.3"), [](Rank& rank) {
    const Log log;
    World world = join(rank, in_pairs);
    auto& comm = world.communicator();
    std::vector<float> x(5);
    comm.all_reduce(x);
    if (rank.rank() == 3) std::this_thread::sleep_for(milliseconds(1500));
    comm.barrier();
    rank.report("log", log.text());
  });
  EXPECT_EQ(count(all_of(ranks), "for rank 3"), count(ranks[2].get("log"), "for rank 3"))
      << all_of(ranks);
  EXPECT_GE(count(ranks[2].get("log"), "for rank 3"), 1u) << all_of(ranks);
  EXPECT_TRUE(has(ranks[2].get("log"), "now sleeping")) << ranks[2].get("log");
}

}  // namespace
}  // namespace hocket::multiprocess
