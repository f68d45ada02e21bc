// Faults of every kind at random points of random calls. Every survivor gets one of the allowed
// errors, all survivors get the same, and nothing is left behind.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <set>
#include <thread>

#include "collectives.h"
#include "ranks.h"

namespace hocket::multiprocess {
namespace {

namespace fs = std::filesystem;
using std::chrono::microseconds;
using std::chrono::milliseconds;

enum class Harm {
  kKill,         // one rank, by SIGKILL
  kKillTwo,      // two at once
  kCrash,        // one rank, by a signal that it raises in the middle of its calls
  kLeave,        // one rank exits
  kStop,         // one rank, for longer than the deadline
  kStopShortly,  // and then somebody aborts
  kStopAndKill,  // one rank is stopped while another is killed
  kAbort,
};
constexpr int kHarms = 8;

struct Round {
  Harm harm;
  int size;
  int first;   // who comes to harm
  int second;  // another rank, where the harm takes two; else the same
  unsigned work;
  microseconds after;

  bool dies(int rank) const {
    switch (harm) {
      case Harm::kKill:
      case Harm::kCrash:
      case Harm::kLeave:
        return rank == first;
      case Harm::kKillTwo:
        return rank == first || rank == second;
      case Harm::kStopAndKill:
        return rank == second;
      default:
        return false;
    }
  }
  std::string describe() const {
    return fmt::format("harm {} to rank {} (and {}) of {}, after {} us",
                       static_cast<int>(harm),
                       first,
                       second,
                       size,
                       after.count());
  }
};

Round random_round(std::mt19937& random, int number) {
  const auto below = [&](int end) {
    return static_cast<int>(random() % static_cast<unsigned>(end));
  };
  Round round{.harm = static_cast<Harm>(number % kHarms), .size = 2 + below(3)};
  const bool takes_two = round.harm == Harm::kKillTwo || round.harm == Harm::kStopAndKill;
  if (takes_two) round.size = std::max(round.size, 3);
  round.first = below(round.size);
  round.second = takes_two ? (round.first + 1 + below(round.size - 1)) % round.size : round.first;
  round.work = static_cast<unsigned>(random());
  round.after = microseconds(below(15'000));
  return round;
}

// Flags of the board.
constexpr int kReady = 0;
constexpr int kHarmNow = 1;  // to ranks that harm themselves
constexpr int kHeard = 2;

// A thread of a rank that causes the planned fault in it, while its first thread makes calls.
void harm_itself(const Rank& rank, const Round& round, Communicator& comm) {
  rank.await(kHarmNow, 1);
  if (round.harm == Harm::kCrash) {
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
  }
  if (round.harm == Harm::kLeave) exit(0);
  comm.abort("enough");
}

void be_rank(Rank& rank, const Round& round) {
  World world = rank.join();
  auto& comm = world.communicator();
  const bool late = round.harm == Harm::kStop;
  comm.set_deadline(late ? Duration(milliseconds(250)) : Duration(std::chrono::seconds(50)));
  const bool harms_itself = round.harm == Harm::kCrash || round.harm == Harm::kLeave ||
                            round.harm == Harm::kAbort || round.harm == Harm::kStopShortly;
  std::optional<std::thread> harm;
  if (harms_itself && rank.rank() == round.first) {
    harm.emplace([&] { harm_itself(rank, round, comm); });
  }
  rank.mark(kReady);
  rank.attempt("first", [&] { work_for_ever(comm, round.work); });
  rank.mark(kHeard);
  // An ended communicator stays ended, and reports it at once.
  rank.attempt("later", [&] { comm.barrier(); });
  if (harm) harm->join();
}

// A survivor may be in a message with the stopped rank alone, and does not need the dead one then.
void await_survivors_a_little(const Watcher& watcher, int count) {
  for (int i = 0; i < 100 && watcher.flag(kHeard) < count; ++i) {
    std::this_thread::sleep_for(milliseconds(5));
  }
}

void do_harm(const Watcher& watcher, const Round& round) {
  watcher.await(kReady, round.size);
  std::this_thread::sleep_for(round.after);
  switch (round.harm) {
    case Harm::kKill:
      return watcher.signal(round.first, SIGKILL);
    case Harm::kKillTwo:
      watcher.signal(round.first, SIGKILL);
      return watcher.signal(round.second, SIGKILL);
    case Harm::kCrash:
    case Harm::kLeave:
    case Harm::kAbort:
      return watcher.mark(kHarmNow);
    case Harm::kStopShortly:
      watcher.signal(round.first, SIGSTOP);
      std::this_thread::sleep_for(round.after);
      watcher.signal(round.first, SIGCONT);
      return watcher.mark(kHarmNow);
    case Harm::kStop:
      watcher.signal(round.first, SIGSTOP);
      watcher.await(kHeard, round.size - 1);  // their deadlines pass
      return watcher.signal(round.first, SIGCONT);
    case Harm::kStopAndKill:
      watcher.signal(round.first, SIGSTOP);
      watcher.signal(round.second, SIGKILL);
      await_survivors_a_little(watcher, round.size - 2);
      return watcher.signal(round.first, SIGCONT);
  }
}

// Errors that a survivor may get. A rank that stops in the middle of a message between two ranks
// makes the other late as well. So any rank may be named.
void expect_allowed(const Round& round, const Result& rank, const std::string& key) {
  const std::string kind = rank.get(key);
  const std::string message = rank.get(key + ".message");
  switch (round.harm) {
    case Harm::kStop:
      EXPECT_EQ(kind, "DeadlineExceeded") << message;
      break;
    case Harm::kStopShortly:
    case Harm::kAbort:
      EXPECT_EQ(kind, "Aborted") << message;
      EXPECT_EQ(rank.number(key + ".peer"), round.first) << message;
      EXPECT_NE(message.find("enough"), std::string::npos) << message;
      break;
    default:
      EXPECT_EQ(kind, "PeerDied") << message;
      EXPECT_TRUE(round.dies(rank.number(key + ".peer"))) << message;
      if (round.harm == Harm::kLeave) {
        EXPECT_NE(message.find("ended in good order"), std::string::npos) << message;
      }
  }
}

// Possible leftovers: descriptors here, children, shared memory with a name, sockets.
struct Leftovers {
  std::size_t descriptors = 0;
  std::set<std::string> named;
  bool sockets = false;
  bool children = false;
};

Leftovers look_for_leftovers() {
  Leftovers found;
  for ([[maybe_unused]] const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    ++found.descriptors;
  }
  std::error_code none;
  for (const auto& entry : fs::directory_iterator("/dev/shm", none)) {
    const std::string name = entry.path().filename();
    if (name.find("hocket") != std::string::npos) found.named.insert(name);
  }
  std::ifstream sockets("/proc/net/unix");
  const std::string own = fmt::format("hocket-faults-{}-", getpid());
  for (std::string line; std::getline(sockets, line);) {
    found.sockets |= line.find(own) != std::string::npos;
  }
  found.children = waitpid(-1, nullptr, WNOHANG) != -1;
  return found;
}

void soak(unsigned seed, int rounds, const std::vector<std::string>& engines) {
  const Leftovers before = look_for_leftovers();
  std::mt19937 random(seed);
  for (int number = 0; number < rounds; ++number) {
    const Round round = random_round(random, number);
    SCOPED_TRACE(fmt::format("round {} of seed {}: {}", number, seed, round.describe()));
    std::vector<int> dying;
    for (int i = 0; i < round.size; ++i) {
      if (round.dies(i)) dying.push_back(i);
    }
    const auto ranks = run_job(
        {.size = round.size, .engines = engines},
        [&](Rank& rank) { be_rank(rank, round); },
        dying,
        [&](const Watcher& watcher) { do_harm(watcher, round); });
    std::set<std::string> kinds;
    for (int i = 0; i < round.size; ++i) {
      if (round.dies(i)) continue;
      const Result& rank = ranks[static_cast<std::size_t>(i)];
      expect_allowed(round, rank, "first");
      expect_allowed(round, rank, "later");
      kinds.insert(rank.get("first"));
    }
    EXPECT_EQ(kinds.size(), 1U) << "survivors were told different things";
    if (testing::Test::HasFailure()) return;
  }
  const Leftovers after = look_for_leftovers();
  EXPECT_EQ(after.descriptors, before.descriptors);
  EXPECT_EQ(after.named, before.named);
  EXPECT_FALSE(after.sockets);
  EXPECT_FALSE(after.children);
}

TEST(Soak, HarmAtAnyPointIsHeardOfByAll) { soak(411, 5 * kHarms, {}); }
TEST(Soak, HarmAtAnyPointOfTheAlgorithmEngineIsHeardOfByAll) { soak(7, 2 * kHarms, {"algorithm"}); }

}  // namespace
}  // namespace hocket::multiprocess
