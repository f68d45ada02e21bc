// Groups: made in all ways, many at once, and gone without a trace.
#include <dirent.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "collectives.h"
#include "ranks.h"

namespace hocket::multiprocess {
namespace {

std::vector<int> ranks_of(const Communicator& comm) {
  return {comm.world_ranks().begin(), comm.world_ranks().end()};
}

void expect_works(const Rank& rank, Communicator& comm, int round) {
  const std::string wrong = wrong_results(comm, round, round % 7 == 0 ? 2000 : 12);
  rank.check(wrong.empty(), fmt::format("in {}: {}", comm.name(), wrong));
}

TEST(Groups, AreWhoTheyAreSaidToBe) {
  for (const char* engine : {"shm", "algorithm"}) {
    run_job({.size = 5, .engines = {engine}}, [](Rank& rank) {
      World world = rank.join();
      auto& comm = world.communicator();
      const int me = rank.rank();

      const std::vector<int> some{4, 0, 2};
      auto group = comm.new_group(some);
      const int expected = me == 4 ? 0 : me == 0 ? 1 : me == 2 ? 2 : -1;
      rank.check(group.rank() == expected && group.is_member() == (expected >= 0), "new_group");
      rank.check(ranks_of(group) == some, "new_group's world_ranks");
      if (group.is_member()) {
        expect_works(rank, group, 1);
      } else {
        const Outcome outside = outcome_of([&] { group.barrier(); });
        rank.check(outside.kind == "InvalidArgument", "a call from outside: " + outside.kind);
      }

      auto parity = comm.split({.color = me % 2, .key = -me});
      rank.check(ranks_of(parity) == (me % 2 == 0 ? std::vector{4, 2, 0} : std::vector{3, 1}),
                 "split by parity, backwards");
      expect_works(rank, parity, 2);

      auto partly = comm.split({.color = me < 3 ? 0 : -1});
      rank.check(partly.is_member() == (me < 3), "split with a negative color");
      if (partly.is_member()) expect_works(rank, partly, 3);

      auto twin = comm.duplicate();
      rank.check(ranks_of(twin) == std::vector{0, 1, 2, 3, 4} && twin.rank() == me, "duplicate");
      expect_works(rank, twin, 4);

      auto deeper = parity.split({.color = 0, .key = me});
      rank.check(ranks_of(deeper) == (me % 2 == 0 ? std::vector{0, 2, 4} : std::vector{1, 3}),
                 "split of a split");
      expect_works(rank, deeper, 5);

      const std::vector<int> alone{me};
      // Everybody gives the same list; one group of one is made for rank 3.
      const std::vector<int> three{3};
      auto single = comm.new_group(three);
      if (single.is_member()) expect_works(rank, single, 6);
      auto listed = world.new_group({4, 0});
      rank.check(ranks_of(listed) == std::vector{4, 0}, "a group by a list of ranks");
      auto nobody = comm.new_group({});
      rank.check(!nobody.is_member() && nobody.size() == 0, "a group of nobody");

      rank.check(ranks_of(comm.intra_node()) == std::vector{0, 1, 2, 3, 4}, "intra_node");
      expect_works(rank, comm.intra_node(), 7);
      rank.check(ranks_of(comm.inter_node()) == alone, "inter_node");
      expect_works(rank, comm.inter_node(), 8);
      rank.check(&comm.intra_node() == &comm.intra_node(), "intra_node is made anew");
      expect_works(rank, comm, 9);
    });
  }
}

TEST(Groups, ByTheThousandAtOnceAreFine) {
  run_job({.size = 3, .watchdog = std::chrono::seconds(120), .segment_bytes = 0}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    std::vector<Communicator> groups;
    for (int i = 0; i < 1000; ++i) {
      if (i % 100 == 0) rank.stage(fmt::format("group {}", i));
      if (i % 3 == 0) {
        const std::vector<int> pair{i % 2, 2};
        groups.push_back(comm.new_group(pair));
      } else {
        groups.push_back(comm.duplicate());
      }
    }
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (groups[i].is_member()) expect_works(rank, groups[i], static_cast<int>(i));
    }
    // Closed in an order of each rank's own.
    for (std::size_t i = 0; i < groups.size(); ++i) {
      groups[rank.rank() == 0 ? groups.size() - 1 - i : i].close();
    }
    expect_works(rank, comm, 1);
  });
}

// --- Leaks --------------------------------------------------------------------------------------

int entries(const char* folder) {
  int count = 0;
  DIR* open = opendir(folder);
  while (open != nullptr && readdir(open) != nullptr) ++count;
  if (open != nullptr) closedir(open);
  return count;
}

int lines(const char* file) {
  std::ifstream in(file);
  int count = 0;
  for (std::string line; std::getline(in, line);) ++count;
  return count;
}

std::size_t shared_kib() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("RssShmem:")) return std::stoul(line.substr(9));
  }
  return 0;
}

TEST(Groups, TenThousandMadeAndClosedLeaveNothing) {
  run_job({.size = 2, .watchdog = std::chrono::seconds(120)}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    const auto make_one = [&](int i) {
      auto group = i % 2 == 0 ? comm.duplicate() : comm.split({.color = 0, .key = i % 3});
      if (i % 10 == 0) expect_works(rank, group, i);
      if (i % 3 == 0) group.close();
    };
    for (int i = 0; i < 500; ++i) make_one(i);  // caches fill
    comm.barrier();
    const int fds = entries("/proc/self/fd");
    const int threads = entries("/proc/self/task");
    const int mappings = lines("/proc/self/maps");
    const std::size_t shared = shared_kib();
    for (int i = 0; i < 10'000; ++i) {
      if (i % 1000 == 0) rank.stage(fmt::format("group {}", i));
      make_one(i);
    }
    // Fewer is fine: rank 0's store lets go of what it needed for the joining.
    rank.check(entries("/proc/self/fd") <= fds, "file descriptors have leaked");
    rank.check(entries("/proc/self/task") == threads, "threads have leaked");
    rank.check(lines("/proc/self/maps") <= mappings + 2,
               fmt::format("{} mappings, {} before", lines("/proc/self/maps"), mappings));
    rank.check(shared_kib() < shared + 64 * 1024,
               fmt::format("{} KiB of shared memory, {} before", shared_kib(), shared));
  });
}

// A group that has met costs 16 KiB a rank. The slots of its calls cost as much again or more:
// small calls among all, and small ones with a root, of every rank.
TEST(Groups, ThatAreKeptStayWhenTheirCommunicatorIsClosed) {
  run_job({.size = 2}, [](Rank& rank) {
    World world = rank.join();
    Communicator comm = world.communicator().duplicate();
    Communicator& node = comm.intra_node();
    Communicator& across = comm.inter_node();
    comm.close();
    expect_works(rank, node, 0);
    rank.check(across.size() == 1, across.name());
    const Outcome closed = outcome_of([&] { comm.barrier(); });
    rank.check(closed.kind == "InvalidArgument", closed.kind + closed.message);
  });
}

TEST(Groups, ThatOutliveTheirWorldSaySo) {
  run_job({.size = 2}, [](Rank& rank) {
    std::optional<World> world(rank.join());
    Communicator comm = world->communicator().duplicate();
    comm.barrier();
    world.reset();
    rank.mark(0);
    rank.await(0, 2);  // each sees that the other has left, too
    for (int call = 0; call < 2; ++call) {
      const Outcome outcome = outcome_of([&] { comm.barrier(); });
      const bool is_told =
          outcome.kind == "InvalidArgument" &&
          outcome.message.find("has been closed on this rank") != std::string::npos;
      rank.check(is_told, outcome.kind + ": " + outcome.message);
    }
  });
}

TEST(Groups, CostFewPages) {
  run_job({.size = 2, .segment_bytes = 0}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    std::vector<Communicator> groups;
    for (int i = 0; i < 20; ++i) groups.push_back(comm.duplicate());
    const std::size_t before = shared_kib();
    for (int i = 0; i < 200; ++i) {
      groups.push_back(comm.duplicate());
      groups.back().barrier();
    }
    const std::size_t each = (shared_kib() - before) / 200;
    rank.check(each <= 17 * 2, fmt::format("a group of two costs {} KiB", each));
    const auto after = [&](const char* what, std::size_t most, const auto& call) {
      comm.barrier();
      for (std::size_t i = 20; i < groups.size(); ++i) {
        for (int turn = 0; turn < 50; ++turn) call(groups[i], turn);
      }
      comm.barrier();
      const std::size_t used = (shared_kib() - before) / 200;
      rank.check(used <= most * 2, fmt::format("a group of two costs {} KiB after {}", used, what));
    };
    std::vector<double> x(1);
    after("small all_reduces", 32, [&](Communicator& group, int) { group.all_reduce(x); });
    after("small broadcasts", 40, [&](Communicator& group, int turn) {
      group.broadcast(x, {.root = turn % 2});
    });
  });
}

// There is no room for another group. All ranks get an error, and existing groups go on.
TEST(Groups, WithoutRoomAreAClearErrorOnAll) {
  const auto ranks = run_job({.size = 3, .segment_bytes = std::size_t{32} << 20}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    comm.set_deadline(std::chrono::seconds(30));
    std::vector<Communicator> groups;
    rank.attempt("call", [&] {
      for (;;) groups.push_back(comm.duplicate());
    });
    rank.check(groups.size() >= 3, "hardly any groups fit");
    expect_works(rank, groups.back(), 1);
    groups.clear();
    for (int i = 0; i < 30; ++i) {
      auto group = comm.duplicate();
      expect_works(rank, group, i);
    }
  });
  for (const Result& rank : ranks) {
    EXPECT_EQ(rank.get("call"), "InvalidArgument");
    EXPECT_NE(rank.get("call.message").find("HOCKET_SEGMENT_GIB"), std::string::npos)
        << rank.get("call.message");
  }
}

// --- Limits -------------------------------------------------------------------------------------

void use_everything(Rank& rank) {
  World world = rank.join();
  auto& comm = world.communicator();
  for (int round = 0; round < 3; ++round) {
    const std::string wrong = wrong_results(comm, round, 60'000);
    rank.check(wrong.empty(), wrong);
  }
  std::vector<Communicator> groups;
  for (int i = 0; i < 20; ++i) {
    groups.push_back(comm.duplicate());
    expect_works(rank, groups.back(), i);
  }
  auto array = comm.symmetric().empty<float>(100'000);
  std::fill_n(array.data<float>(), 100'000, 1.0F);
  comm.all_reduce(array);
  rank.check(array.data<float>()[99'999] == static_cast<float>(comm.size()), "the sum is wrong");
  std::vector<float> out(500'000, 1.0F);
  std::vector<float> in(500'000);
  comm.send_recv(
      out, (rank.rank() + 1) % rank.size(), in, (rank.rank() + rank.size() - 1) % rank.size());
  rank.check(in.back() == 1.0F, "the message is wrong");
}

// The sanitizers reserve terabytes.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kMayLimitAddresses = false;
#else
constexpr bool kMayLimitAddresses = true;
#endif

TEST(Limits, ASmallSegmentIsEnough) {
  run_job({.size = 3, .environment = {{"HOCKET_SEGMENT_GIB", "1"}}, .segment_bytes = 0},
          use_everything);
}

// The world itself always has room, however little is requested.
TEST(Limits, TheLeastSegmentHasRoomForTheWorld) {
  for (const std::size_t bytes : {1, 4096, 1 << 20}) {
    run_job({.size = 3, .segment_bytes = bytes}, [](Rank& rank) {
      World world = rank.join();
      world.communicator().barrier();
    });
    for (const std::size_t threads : {1, 2, 9}) {
      run_threads(static_cast<int>(threads),
                  [](Communicator& comm) { comm.barrier(); },
                  {.segment_bytes = bytes});
    }
  }
}

// Sums of sizes do not wrap around to something that is there.
TEST(Limits, ASegmentLargerThanAnyAddressSpaceIsAClearError) {
  const auto join = [](Communicator&) {};
  EXPECT_THROW(run_threads(2, join, {.segment_bytes = SIZE_MAX}), SystemError);
  EXPECT_THROW(run_threads(2, join, {.segment_bytes = SIZE_MAX / 2 + 1}), SystemError);
  EXPECT_THROW(init({.segment_bytes = SIZE_MAX}), SystemError);
}

// The kernel would end the process by a signal.
TEST(Limits, TooSmallFilesAreAClearError) {
  const auto ranks = run_job({.size = 2}, [](Rank& rank) {
    const rlimit limit{.rlim_cur = 4096, .rlim_max = 4096};
    setrlimit(RLIMIT_FSIZE, &limit);
    rank.attempt("init", [&] { static_cast<void>(rank.join()); });
  });
  EXPECT_EQ(ranks[0].get("init"), "Error");
  EXPECT_NE(ranks[0].get("init.message").find("ulimit -f"), std::string::npos)
      << ranks[0].get("init.message");
  EXPECT_EQ(ranks[1].get("init"), "RendezvousError") << ranks[1].get("init.message");
}

// Daemons do this. Output of such a program goes nowhere.
TEST(Limits, ClosedStandardDescriptorsAreNotHocketsOwn) {
  run_job({.size = 2}, [](Rank& rank) {
    for (const int descriptor : {0, 1, 2}) close(descriptor);
    World world = rank.join();
    for (const int descriptor : {0, 1, 2}) {
      const std::string file =
          std::filesystem::read_symlink(fmt::format("/proc/self/fd/{}", descriptor));
      rank.check(file == "/dev/null", fmt::format("descriptor {} is {}", descriptor, file));
    }
    world.communicator().barrier();
  });
}

// The others hear from init, at once, if one rank cannot join: none waits for it.
TEST(Settings, ThatOneRankRefusesOthersHearOf) {
  const std::pair<const char*, const char*> wrong[] = {{"HOCKET_ENGINES", "none"},
                                                       {"HOCKET_ALGORITHM", "none"},
                                                       {"HOCKET_TRACE", "/dev/null/no-folder"}};
  for (const auto& [name, value] : wrong) {
    SCOPED_TRACE(name);
    const auto ranks = run_job({.size = 3}, [name = name, value = value](Rank& rank) {
      if (rank.rank() == 1) setenv(name, value, 1);
      rank.attempt("init", [&] { static_cast<void>(init(rank.init_options())); });
    });
    for (const std::size_t other : {0, 2}) {
      EXPECT_EQ(ranks[other].get("init"), "RendezvousError");
      const std::string said = "rank 1 cannot join: " + ranks[1].get("init.message");
      EXPECT_EQ(ranks[other].get("init.message"), said);
    }
  }
}

TEST(Settings, ThatDifferAreNamedWhereCallsWouldEndNowhere) {
  const std::pair<const char*, const char*> wrong[] = {{"HOCKET_ENGINES", "algorithm"},
                                                       {"HOCKET_ALGORITHM", "ring"}};
  for (const auto& [name, value] : wrong) {
    SCOPED_TRACE(name);
    const auto ranks = run_job({.size = 3}, [name = name, value = value](Rank& rank) {
      if (rank.rank() == 1) setenv(name, value, 1);
      rank.attempt("init", [&] { static_cast<void>(init(rank.init_options())); });
    });
    for (const Result& rank : ranks) {
      EXPECT_EQ(rank.get("init"), "RendezvousError");
      EXPECT_NE(rank.get("init.message").find(name), std::string::npos) << rank.get("init.message");
      EXPECT_NE(rank.get("init.message").find("rank 1"), std::string::npos)
          << rank.get("init.message");
    }
  }
}

TEST(Limits, LittleAddressSpaceIsEnough) {
  if (!kMayLimitAddresses) GTEST_SKIP();
  for (const std::size_t gib : {1, 4, 16}) {
    SCOPED_TRACE(fmt::format("{} GiB of address space", gib));
    run_job({.size = 3, .address_space = gib << 30, .segment_bytes = 0}, use_everything);
  }
}

// One rank has less than the others, perhaps too little: then a clear error, and no rank waits.
TEST(Limits, OneRankWithLessAddressSpaceIsAClearError) {
  if (!kMayLimitAddresses) GTEST_SKIP();
  const auto ranks = run_job({.size = 2, .segment_bytes = std::size_t{2} << 30}, [](Rank& rank) {
    if (rank.rank() == 1) {
      const rlimit limit{.rlim_cur = std::size_t{1} << 30, .rlim_max = std::size_t{1} << 30};
      setrlimit(RLIMIT_AS, &limit);
    }
    InitOptions options = rank.init_options();
    options.timeout = std::chrono::seconds(2);
    rank.attempt("init", [&] { static_cast<void>(init(options)); });
  });
  EXPECT_EQ(ranks[1].get("init"), "Error");
  EXPECT_NE(ranks[1].get("init.message").find("ulimit -v"), std::string::npos)
      << ranks[1].get("init.message");
  EXPECT_EQ(ranks[0].get("init"), "RendezvousError") << ranks[0].get("init.message");
  EXPECT_NE(ranks[0].get("init.message").find("1"), std::string::npos);
}

}  // namespace
}  // namespace hocket::multiprocess
