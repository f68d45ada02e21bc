// Ranks that join a running job: after deaths, among deaths, and where nobody comes.
#include "hocket/admission.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <random>
#include <thread>

#include "collectives.h"
#include "hocket/store.h"
#include "pretended_hosts.h"

namespace hocket::multiprocess {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

// The processes of one test: the first ones begin the job, the others come to its door.
struct Team {
  int members = 2;
  int processes = 3;
  std::string door = fmt::format("unix:hocket-test-door-{}", ::getpid());

  JobOptions options() const { return {.size = processes, .environment = {{"HOCKET_DOOR", door}}}; }
  bool is_newcomer(const Rank& rank) const { return rank.rank() >= members; }
  World begin(const Rank& rank) const {
    InitOptions options = rank.init_options();
    options.size = members;
    return init(options);
  }
  World come(const Rank& rank, Duration timeout = seconds(40)) const {
    InitOptions options = rank.init_options();
    options.rank.reset();
    options.size.reset();
    options.address.clear();
    options.join = door;
    options.timeout = timeout;
    return init(options);
  }
};

void check_works(const Rank& rank, Communicator& comm) {
  for (const std::size_t count : {1, 700, 60'000}) {
    const std::string wrong = wrong_results(comm, 3, count);
    rank.check(wrong.empty(), wrong);
  }
}

void report_place(const Rank& rank, World& world) {
  rank.report("rank", std::to_string(world.rank()));
  rank.report("size", std::to_string(world.size()));
  rank.report("newcomers", fmt::format("{}", fmt::join(world.launch().newcomers, ",")));
}

// Takes in newcomers until the job has this many ranks. Members and newcomers make the same calls.
World admit_until(const Rank& rank, World world, int size, AdmitOptions options = {}) {
  for (int tries = 0; tries < 50; ++tries) {
    const Outcome outcome = outcome_of([&] { world.communicator().barrier(); });
    rank.check(outcome.ok() || outcome.kind == "PeerDied" || outcome.kind == "Aborted",
               outcome.message);
    if (outcome.ok() && world.size() == size) break;
    options.newcomers = std::max(1, size - world.size());
    world = admit(world.communicator(), options);
  }
  return world;
}

TEST(Admission, TakesANewcomerIn) {
  const Team team;
  const auto ranks = run_job(team.options(), [&](Rank& rank) {
    World world = team.is_newcomer(rank) ? team.come(rank) : team.begin(rank);
    if (!team.is_newcomer(rank)) {
      check_works(rank, world.communicator());
      world = admit(world.communicator());
    }
    check_works(rank, world.communicator());
    report_place(rank, world);
  });
  for (int i = 0; i < team.processes; ++i) {
    const auto& result = ranks[static_cast<std::size_t>(i)];
    EXPECT_EQ(result.number("rank"), i);
    EXPECT_EQ(result.number("size"), 3);
    EXPECT_EQ(result.get("newcomers"), "2");
  }
}

// The ranks that are taken, for the members 0 and 2 of three whose rank 1 has died.
struct Seats {
  bool keep_ranks;
  int newcomers;
  std::vector<int> ranks;  // of processes 0, 2, 3, 4; -1: it is not taken in
};

class AdmissionSeats : public testing::TestWithParam<Seats> {};

TEST_P(AdmissionSeats, GoToMembersFirst) {
  const Seats& seats = GetParam();
  const Team team{.members = 3, .processes = 3 + seats.newcomers};
  const auto ranks =
      run_job(team.options(),
              [&](Rank& rank) {
                if (team.is_newcomer(rank)) {
                  World world = team.come(rank);
                  report_place(rank, world);
                  return check_works(rank, world.communicator());
                }
                World world = team.begin(rank);
                if (rank.rank() == 1) ::raise(SIGKILL);
                rank.attempt("barrier", [&] { world.communicator().barrier(); });
                world = admit(world.communicator(),
                              {.newcomers = seats.newcomers, .keep_ranks = seats.keep_ranks});
                report_place(rank, world);
                check_works(rank, world.communicator());
              },
              {1});
  std::vector<int> newcomers;
  for (int i = 3; i < team.processes; ++i) {
    newcomers.push_back(ranks[static_cast<std::size_t>(i)].number("rank"));
  }
  std::ranges::sort(newcomers);
  std::vector<int> got{ranks[0].number("rank"), ranks[2].number("rank")};
  got.insert(got.end(), newcomers.begin(), newcomers.end());
  EXPECT_EQ(got, seats.ranks);
  EXPECT_EQ(ranks[0].number("size"), 2 + seats.newcomers);
}

INSTANTIATE_TEST_SUITE_P(Table,
                         AdmissionSeats,
                         testing::Values(Seats{true, 1, {0, 2, 1}},
                                         Seats{true, 2, {0, 2, 1, 3}},
                                         Seats{false, 1, {0, 1, 2}},
                                         Seats{false, 2, {0, 1, 2, 3}}));

TEST(Admission, MovesAMemberWhoseRankIsBeyondTheEnd) {
  const Team team{.members = 3, .processes = 3};
  const auto ranks = run_job(team.options(),
                             [&](Rank& rank) {
                               World world = team.begin(rank);
                               if (rank.rank() == 1) ::raise(SIGKILL);
                               world = admit(world.communicator(), {.patience = milliseconds(50)});
                               report_place(rank, world);
                               check_works(rank, world.communicator());
                             },
                             {1});
  EXPECT_EQ(ranks[0].number("rank"), 0);
  EXPECT_EQ(ranks[2].number("rank"), 1);
  EXPECT_EQ(ranks[2].number("size"), 2);
  EXPECT_EQ(ranks[2].get("newcomers"), "");
}

TEST(Admission, WaitsForNobodyWhereNoneAreWanted) {
  const Team team{.members = 2, .processes = 2};
  run_job(team.options(), [&](Rank& rank) {
    World world = team.begin(rank);
    world = admit(world.communicator(), {.newcomers = 0, .patience = kForever});
    rank.check(world.size() == 2, "the size is another");
    check_works(rank, world.communicator());
  });
}

TEST(Admission, OfASingleProcessGrowsAndShrinksAndGrows) {
  const Team team{.members = 1, .processes = 4};
  run_job(team.options(), [&](Rank& rank) {
    World world = team.is_newcomer(rank) ? team.come(rank) : team.begin(rank);
    world = admit_until(rank, std::move(world), 4);
    check_works(rank, world.communicator());
  });
}

// The root of the second admission is a newcomer, and another process has opened the door.
TEST(Admission, GoesOnWhenTheRootDies) {
  const Team team{.members = 3, .processes = 5};
  const auto ranks = run_job(team.options(),
                             [&](Rank& rank) {
                               if (rank.rank() == 4) rank.await(0, 3);
                               World world =
                                   team.is_newcomer(rank) ? team.come(rank) : team.begin(rank);
                               if (!team.is_newcomer(rank)) {
                                 if (rank.rank() == 0) ::raise(SIGKILL);
                                 world = admit(world.communicator());
                                 rank.check(world.size() == 3, "the newcomer did not take rank 0");
                               }
                               if (rank.rank() != 4) {
                                 rank.mark(0);
                                 world = admit(world.communicator());
                               }
                               check_works(rank, world.communicator());
                               report_place(rank, world);
                             },
                             {0});
  EXPECT_EQ(ranks[3].number("rank"), 0);
  EXPECT_EQ(ranks[4].number("size"), 4);
}

// The door is served by a process that closes it after so long, again and again: before a newcomer
// comes, while it is called, and while it is invited.
class AdmissionDoors : public testing::TestWithParam<int> {};
TEST_P(AdmissionDoors, ThatCloseAreOpenedAgain) {
  const Team team{.members = 2, .processes = 4};
  const microseconds open(GetParam());
  const auto ranks = run_job(team.options(), [&](Rank& rank) {
    if (rank.rank() == 3) {  // serves the door whenever nobody else does
      while (rank.flag(0) < 3) {
        try {
          const StoreServer server({.address = team.door, .key = {}, .job = "hocket door"});
          std::this_thread::sleep_for(open);
        } catch (const Error&) {
          std::this_thread::sleep_for(milliseconds(1));
        }
      }
      return;
    }
    if (team.is_newcomer(rank)) std::this_thread::sleep_for(milliseconds(30));
    World world = team.is_newcomer(rank) ? team.come(rank) : team.begin(rank);
    world = admit_until(rank, std::move(world), 3);
    check_works(rank, world.communicator());
    rank.mark(0);
    report_place(rank, world);
  });
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ranks[static_cast<std::size_t>(i)].number("size"), 3);
}
INSTANTIATE_TEST_SUITE_P(Table, AdmissionDoors, testing::Values(500, 3'000, 20'000, 60'000));

class AdmissionHosts : public PretendedHosts {};

TEST_F(AdmissionHosts, TakeANewcomerOfAnotherHost) {
  const Team team{.members = 3, .processes = 5};
  const auto ranks = run_job(team.options(), [&](Rank& rank) {
    setenv(
        "HOCKET_HOST", fmt::format("{}/", rank.rank() == 4 ? 2 : in_pairs(rank.rank())).c_str(), 1);
    World world = team.is_newcomer(rank) ? team.come(rank) : team.begin(rank);
    if (!team.is_newcomer(rank)) world = admit(world.communicator(), {.newcomers = 2});
    check_works(rank, world.communicator());
    report_place(rank, world);
  });
  for (const auto& result : ranks) EXPECT_EQ(result.number("size"), 5);
}

// --- Deaths meanwhile ---------------------------------------------------------------------------

// Kills this process after a random time.
void die_soon(unsigned seed, microseconds longest) {
  std::minstd_rand random(seed);
  const microseconds after(std::uniform_int_distribution<long>(0, longest.count())(random));
  std::thread([after] {
    std::this_thread::sleep_for(after);
    ::kill(::getpid(), SIGKILL);
  }).detach();
}

class AdmissionDeaths : public testing::TestWithParam<int> {};

TEST_P(AdmissionDeaths, OfANewcomerDelayNobodyForLong) {
  const auto seed = static_cast<unsigned>(GetParam());
  const Team team{.members = 2, .processes = 4};
  const auto ranks =
      run_job(team.options(),
              [&](Rank& rank) {
                if (rank.rank() == 2) die_soon(seed, milliseconds(60));
                World world = team.is_newcomer(rank) ? team.come(rank) : team.begin(rank);
                if (rank.rank() == 2) ::pause();
                world = admit_until(rank, std::move(world), 3, {.patience = seconds(2)});
                rank.report("size", std::to_string(world.size()));
              },
              {2});
  for (const std::size_t i : {0, 1, 3}) {
    EXPECT_TRUE(ranks[i].exited()) << i;
    EXPECT_EQ(ranks[i].number("size"), 3) << i;
  }
}

// The numbers of the processes in the job, by rank; empty if the call fails.
std::vector<int> processes_of(const Rank& rank, Communicator& comm) {
  std::vector<int> all(static_cast<std::size_t>(comm.size()));
  const int own = rank.rank();
  const Outcome outcome = outcome_of([&] { comm.all_gather(std::span(&own, 1), all); });
  if (outcome.ok()) return all;
  rank.check(outcome.kind == "PeerDied" || outcome.kind == "Aborted", outcome.message);
  return {};
}

TEST_P(AdmissionDeaths, OfAMemberLeaveTheOthersGoingOn) {
  const auto seed = static_cast<unsigned>(GetParam());
  const int victim = GetParam() % 2 == 0 ? 0 : 2;
  const Team team{.members = 3, .processes = 4};
  std::vector<int> living{0, 1, 2, 3};
  std::erase(living, victim);
  const auto ranks =
      run_job(team.options(),
              [&](Rank& rank) {
                World world = team.is_newcomer(rank) ? team.come(rank) : team.begin(rank);
                if (rank.rank() == victim) die_soon(seed, milliseconds(40));
                bool is_complete = false;
                for (int tries = 0; tries < 200 && !is_complete; ++tries) {
                  std::vector<int> processes = processes_of(rank, world.communicator());
                  std::ranges::sort(processes);
                  is_complete = processes == living;
                  if (is_complete) break;
                  const auto patience = milliseconds(world.size() < 3 ? 500 : 5);
                  world = admit(world.communicator(), {.newcomers = 1, .patience = patience});
                }
                rank.check(is_complete, "the four never became three");
                check_works(rank, world.communicator());
              },
              {victim});
  for (const int i : living) EXPECT_TRUE(ranks[static_cast<std::size_t>(i)].exited()) << i;
}

INSTANTIATE_TEST_SUITE_P(Seeds, AdmissionDeaths, testing::Range(1, 13));

// --- Refusals -----------------------------------------------------------------------------------

TEST(Admission, RefusesWrongOptionsOnAllRanksAndGoesOn) {
  const Team team{.members = 2, .processes = 2};
  const auto ranks = run_job(team.options(), [&](Rank& rank) {
    World world = team.begin(rank);
    rank.attempt("negative", [&] {
      static_cast<void>(admit(world.communicator(), {.newcomers = rank.rank() == 1 ? -1 : 1}));
    });
    rank.attempt("patience", [&] {
      static_cast<void>(admit(world.communicator(), {.patience = -seconds(1)}));
    });
    world.rebuild();
    check_works(rank, world.communicator());
  });
  EXPECT_EQ(ranks[1].get("negative"), "InvalidArgument");
  EXPECT_EQ(ranks[0].get("negative"), "InvalidArgument");
  EXPECT_EQ(ranks[0].get("patience"), "InvalidArgument");
}

TEST(Admission, SaysThatADoorIsNone) {
  const Team team{.members = 2, .processes = 2, .door = "10.255.255.1:9"};
  const auto ranks = run_job(team.options(), [&](Rank& rank) {
    World world = team.begin(rank);
    rank.attempt("admit", [&] { static_cast<void>(admit(world.communicator())); });
    check_works(rank, world.communicator());
  });
  for (const auto& result : ranks) {
    EXPECT_NE(result.get("admit.message").find("10.255.255.1:9"), std::string::npos)
        << result.get("admit.message");
  }
}

TEST(Admission, NewcomersSayThatNoJobTookThemIn) {
  const Team team{.members = 0, .processes = 1};
  const auto ranks = run_job(team.options(), [&](Rank& rank) {
    rank.attempt("come", [&] { static_cast<void>(team.come(rank, milliseconds(200))); });
  });
  EXPECT_EQ(ranks[0].get("come"), "RendezvousError");
  EXPECT_NE(ranks[0].get("come.message").find(team.door), std::string::npos);
}

TEST(Admission, OfThreadsIsRefused) {
  std::string message;
  run_threads(2, [&](Communicator& comm) {
    const Outcome outcome = outcome_of([&] { static_cast<void>(admit(comm)); });
    if (comm.rank() == 0) message = outcome.message;
  });
  EXPECT_NE(message.find("threads"), std::string::npos) << message;
}

}  // namespace
}  // namespace hocket::multiprocess
