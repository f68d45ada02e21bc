// Arguments that one rank refuses: everybody hears at once, and the communicator goes on.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collectives.h"
#include "hocket/compression.h"
#include "ranks.h"

namespace hocket::multiprocess {
namespace {

using std::chrono::seconds;

// More calls than a rank remembers, so that nothing of the refusal can linger.
void expect_usable(const Rank& rank, Communicator& comm) {
  rank.stage("afterwards");
  for (int round = 0; round < 15; ++round) {
    const std::string wrong = wrong_results(comm, round, round % 3 == 2 ? 9000 : 5);
    rank.check(wrong.empty(), "afterwards: " + wrong);
  }
}

// Refused on this rank: no bitwise and of floats.
void refused_all_reduce(Communicator& comm, std::span<float> x) {
  comm.all_reduce(x, {.op = ReduceOp::kBitAnd});
}

class Refusals : public testing::TestWithParam<std::string> {};

TEST_P(Refusals, ByOneRankReachAllAndHarmNothing) {
  for (const std::size_t share : {4, 30'000}) {
    for (const int refuser : {0, 1}) {
      SCOPED_TRACE(fmt::format("{} of {} floats, rank {} refuses", GetParam(), share, refuser));
      const auto ranks = run_job({.size = 3}, [&](Rank& rank) {
        World world = rank.join();
        auto& comm = world.communicator();
        comm.set_deadline(seconds(30));
        Arrays arrays(3, share);
        comm.barrier();
        if (rank.rank() == refuser) {
          rank.attempt("call", [&] { refused_all_reduce(comm, arrays.in_share()); });
        } else {
          rank.attempt("call", [&] { collective(GetParam()).run(comm, arrays, 0, {}); });
        }
        expect_usable(rank, comm);
      });
      for (std::size_t i = 0; i < 3; ++i) {
        const Result& rank = ranks[i];
        // A rank may have given its data to others before the refusal came.
        if (static_cast<int>(i) != refuser && rank.get("call") == "ok") continue;
        EXPECT_EQ(rank.get("call"), "InvalidArgument") << rank.get("call.message");
        if (static_cast<int>(i) == refuser) continue;
        const std::string expected = fmt::format("rank {} refused all_reduce #2", refuser);
        EXPECT_NE(rank.get("call.message").find(expected), std::string::npos)
            << rank.get("call.message");
      }
    }
  }
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Collective& each : collectives()) all.emplace_back(each.name);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Refusal, Refusals, testing::ValuesIn(names()), [](const auto& each) {
  return each.param;
});

TEST(Refusal, NamesTheReason) {
  const auto ranks = run_job({.size = 3}, [](Rank& rank) {
    World world = rank.join();
    std::vector<float> x(4);
    rank.attempt("call",
                 [&] { world.communicator().broadcast(x, {.root = rank.rank() == 1 ? 17 : 1}); });
    expect_usable(rank, world.communicator());
  });
  for (const int i : {0, 2}) {
    const Result& rank = ranks[static_cast<std::size_t>(i)];
    EXPECT_EQ(rank.get("call"), "InvalidArgument");
    EXPECT_EQ(rank.number("call.peer"), 1);
    EXPECT_NE(rank.get("call.message").find("rank 1 refused broadcast #1"), std::string::npos)
        << rank.get("call.message");
    EXPECT_NE(rank.get("call.message").find("17"), std::string::npos) << rank.get("call.message");
  }
  EXPECT_EQ(ranks[1].get("call"), "InvalidArgument");
}

TEST(Refusal, ByAllAndByTwoIsFine) {
  for (const int good : {-1, 1}) {
    run_job({.size = 3}, [&](Rank& rank) {
      World world = rank.join();
      Arrays arrays(3, 4);
      const Outcome outcome = rank.attempt("call", [&] {
        if (rank.rank() == good) world.communicator().all_reduce(arrays.in_share());
        if (rank.rank() != good) refused_all_reduce(world.communicator(), arrays.in_share());
      });
      rank.check(outcome.kind == "InvalidArgument", outcome.kind + outcome.message);
      expect_usable(rank, world.communicator());
    });
  }
}

// A rank refuses many calls before the others come to the first.
TEST(Refusal, ManyInARowAreAllHeard) {
  for (const int calls : {2, 5, 40}) {
    SCOPED_TRACE(calls);
    run_job({.size = 3}, [&](Rank& rank) {
      World world = rank.join();
      auto& comm = world.communicator();
      comm.set_deadline(seconds(30));
      Arrays arrays(3, 4);
      if (rank.rank() != 1) rank.await(0, 1);
      for (int i = 0; i < calls; ++i) {
        const Outcome outcome = rank.attempt("call", [&] {
          if (rank.rank() == 1) refused_all_reduce(comm, arrays.in_share());
          if (rank.rank() != 1) comm.all_reduce(arrays.in_share(), arrays.out_share());
        });
        rank.check(outcome.kind == "InvalidArgument",
                   fmt::format("call {}: {} {}", i, outcome.kind, outcome.message));
        // A bound limits how far a rank gets ahead of the others.
        if (i == std::min(calls, 3) - 1) rank.mark(0);
      }
      expect_usable(rank, comm);
    });
  }
}

// A root that gave all it had before the refusal came knows nothing of it, for long.
TEST(Refusal, ThatARootDoesNotNoticeHarmsNothing) {
  run_job({.size = 3}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    comm.set_deadline(seconds(30));
    Arrays arrays(3, 4);
    comm.barrier();
    if (rank.rank() == 2) {
      rank.await(0, 1);
      rank.attempt("call", [&] { refused_all_reduce(comm, arrays.in_share()); });
    } else {
      rank.attempt("call", [&] { comm.broadcast(arrays.in_share(), {.root = 0}); });
      if (rank.rank() == 0) rank.mark(0);
    }
    // Only giving, for longer than records last; then everybody meets.
    for (int i = 0; i < 50; ++i) {
      arrays.in[0] = rank.rank() == 0 ? static_cast<float>(i) : -1;
      comm.broadcast(arrays.in_share(), {.root = 0});
      rank.check(arrays.in[0] == static_cast<float>(i), "a broadcast afterwards is wrong");
    }
    expect_usable(rank, comm);
  });
}

TEST(Refusal, OfAsyncCallsEndsThoseAlone) {
  run_job({.size = 3}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    comm.set_deadline(seconds(30));
    std::vector<std::vector<float>> arrays(30, std::vector<float>(50, 1.0F));
    std::vector<std::optional<Work>> works(arrays.size());
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      // Rank 1 refuses calls 3 and 20, rank 2 call 4; refused at the start, in the caller's thread.
      const bool refuses =
          (rank.rank() == 1 && (i == 3 || i == 20)) || (rank.rank() == 2 && i == 4);
      const Outcome outcome = outcome_of([&] {
        works[i] =
            comm.all_reduce_async(arrays[i], {.op = refuses ? ReduceOp::kBitOr : ReduceOp::kSum});
      });
      rank.check(outcome.ok() != refuses, fmt::format("start {}: {}", i, outcome.message));
    }
    for (std::size_t i = 0; i < works.size(); ++i) {
      if (!works[i]) continue;
      rank.stage(fmt::format("work {}", i));
      const bool refused = i == 3 || i == 4 || i == 20;
      const Outcome outcome = outcome_of([&] { works[i]->wait(); });
      rank.check(outcome.kind == (refused ? "InvalidArgument" : "ok"),
                 fmt::format("work {}: {} {}", i, outcome.kind, outcome.message));
      if (!refused) rank.check(arrays[i][7] == 3.0F, fmt::format("the sum of work {} is wrong", i));
    }
    expect_usable(rank, comm);
  });
}

TEST(Refusal, WhileWorkIsUnderWayKeepsItsPlace) {
  run_job({.size = 2}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    comm.set_deadline(seconds(30));
    std::vector<float> x(1000, 1.0F);
    std::vector<float> y(10);
    if (rank.rank() == 0) {
      Work work = comm.all_reduce_async(x);
      const Outcome refused = rank.attempt("refused", [&] { refused_all_reduce(comm, y); });
      rank.check(refused.kind == "InvalidArgument", refused.kind);
      rank.mark(0);
      work.wait();
    } else {
      rank.await(0, 1);
      comm.all_reduce(x);
      const Outcome refused = rank.attempt("refused", [&] { comm.barrier(); });
      rank.check(refused.kind == "InvalidArgument", refused.kind + refused.message);
    }
    rank.check(x[999] == 2.0F, "the work before the refusal is wrong");
    expect_usable(rank, comm);
  });
}

TEST(Refusal, OfGroupsAndSymmetricArraysIsHeard) {
  run_job({.size = 2}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    comm.set_deadline(seconds(30));
    const std::vector<int> good{0, 1};
    const std::vector<int> twice{1, 1};
    const Outcome group = rank.attempt(
        "group", [&] { static_cast<void>(comm.new_group(rank.rank() == 0 ? twice : good)); });
    rank.check(group.kind == "InvalidArgument", group.kind + group.message);
    // More than there is: on both ranks, in both orders.
    const Outcome array = rank.attempt(
        "array", [&] { static_cast<void>(comm.symmetric().empty<double>(std::size_t{1} << 40)); });
    rank.check(array.kind == "InvalidArgument", array.kind + array.message);
    expect_usable(rank, comm);
  });
}

// A rank that has refused a call goes on to later calls while others still wait in it.
TEST(Refusal, LaterDataAreNotTakenForThoseOfARefusedCall) {
  run_job({.size = 4}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    comm.set_deadline(seconds(30));
    constexpr std::size_t kElements = 2000;  // more than goes with the flag
    for (int round = 0; round < 200; ++round) {
      const int refuser = round % 3 == 0 ? round / 3 % 4 : -1;
      std::vector<float> x(kElements, static_cast<float>(rank.rank() + round));
      const Outcome outcome = outcome_of([&] {
        if (rank.rank() == refuser) {
          refused_all_reduce(comm, x);
        } else if (round % 2 == 0) {
          comm.all_reduce(x);
        } else {
          comm.all_reduce_async(x, x).wait();
        }
      });
      const std::string expected = refuser < 0 ? "ok" : "InvalidArgument";
      rank.check(outcome.kind == expected,
                 fmt::format("round {}: {} {}", round, outcome.kind, outcome.message));
      const float sum = static_cast<float>(4 * round + 6);
      rank.check(refuser >= 0 || x[kElements - 1] == sum, fmt::format("round {}: sum", round));
    }
  });
}

// Arrays without an element type, at a null address, or with bytes that wrap around. All verbs
// refuse them, also those that read them before any call of the group has checked them.
TEST(Refusal, OfArraysThatCannotBe) {
  run_threads(2, [](Communicator& comm) {
    float x[4] = {}, y[8] = {};
    const ArrayView views[] = {
        {x, SIZE_MAX, DType::kFloat32},              // nearly nothing in bytes
        {x, SIZE_MAX / 2 + 1, DType::kFloat32},      // exactly nothing
        {x, std::size_t{1} << 59, DType::kFloat32},  // countable by itself
        {x, 4, static_cast<DType>(99)},
        {nullptr, 4, DType::kFloat32},
    };
    for (const ArrayView& view : views) {
      SCOPED_TRACE(fmt::format("{} at {}", view.count(), view.data()));
      const ArrayView twice(y, 2 * view.count(), view.dtype());
      const auto expect_refusal = [](const auto& call) { EXPECT_THROW(call(), InvalidArgument); };
      expect_refusal([&] { comm.all_reduce(view); });
      expect_refusal([&] { comm.broadcast(view); });
      expect_refusal([&] { comm.all_gather(view, twice); });
      expect_refusal([&] { comm.reduce_scatter(twice, view); });
      expect_refusal([&] { comm.all_to_all(view, twice); });
      expect_refusal([&] { comm.send(view, 1 - comm.rank()); });
      expect_refusal([&] { comm.recv(view, 1 - comm.rank()); });
      expect_refusal([&] { comm.reproducible_sum(view, view); });
      expect_refusal([&] { comm.all_reduce_coalesced({{view, y}}); });
      expect_refusal([&] { comm.broadcast_coalesced({{view, y}}); });
      expect_refusal([&] { comm.all_gather_coalesced({{view}}, {{twice}}); });
      expect_refusal([&] { comm.reduce_scatter_coalesced({{twice}}, {{view}}); });
      expect_refusal([&] { compressed_all_reduce(comm, view); });
      if (view.data() == nullptr) continue;
      expect_refusal(
          [&] { static_cast<void>(comm.symmetric().empty(view.count(), view.dtype())); });
    }
    int ranks = 1;
    comm.all_reduce(scalar(ranks));
    EXPECT_EQ(ranks, 2);
  });
}

// A rank may learn of a refusal from another's fingerprint, before it has waited at all. It has
// then left the call, too: ranks ahead of it need not wait for its next call.
TEST(Refusal, IsHeardAtTheFirstLookToo) {
  run_job({.size = 3, .engines = {"shm"}}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    comm.set_deadline(seconds(20));
    float x = 1;
    std::vector<float> all(3);
    comm.barrier();
    // Rank 0 has given its part before it could hear of the first refusal.
    const RootOptions at_one{.root = 1};
    if (rank.rank() == 2) {
      rank.check(outcome_of([&] { refused_all_reduce(comm, {&x, 1}); }).kind == "InvalidArgument",
                 "the first refusal");
      rank.check(outcome_of([&] { refused_all_reduce(comm, {&x, 1}); }).kind == "InvalidArgument",
                 "the second refusal");
      rank.mark(0);
    } else if (rank.rank() == 1) {
      rank.check(outcome_of([&] { comm.gather(scalar(x), all, at_one); }).kind == "InvalidArgument",
                 "the root heard of the first refusal");
      rank.await(0, 1);
      rank.check(outcome_of([&] { comm.all_reduce(scalar(x)); }).kind == "InvalidArgument",
                 "rank 1 heard of the second refusal");
      rank.mark(1);
    } else {
      outcome_of([&] { comm.gather(scalar(x), all, at_one); });
      rank.await(1, 1);
      rank.check(outcome_of([&] { comm.all_reduce(scalar(x)); }).kind == "InvalidArgument",
                 "rank 0 heard of the second refusal");
      rank.mark(2);
      rank.await(3, 1);
    }
    if (rank.rank() == 1) {
      rank.await(2, 1);
      for (int i = 0; i < 2; ++i) comm.broadcast(scalar(x), at_one);
      rank.mark(3);
    } else {
      for (int i = 0; i < 2; ++i) comm.broadcast(scalar(x), at_one);
    }
    expect_usable(rank, comm);
  });
}

// Messages are outside the order: a refused one concerns its own rank.
TEST(Refusal, OfAMessageIsLocal) {
  run_job({.size = 2}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    std::vector<int> x{rank.rank()};
    if (rank.rank() == 0) {
      for (const int peer : {2, -1, -7}) {
        const Outcome outcome = outcome_of([&] { comm.send(x, peer); });
        rank.check(outcome.kind == "InvalidArgument", outcome.kind + outcome.message);
      }
      const Outcome tag = outcome_of([&] { comm.recv(x, 1, {.tag = -2}); });
      rank.check(tag.kind == "InvalidArgument", tag.kind + tag.message);
      comm.send(x, 1);
    } else {
      comm.recv(x, 0);
      rank.check(x[0] == 0, "the message after the refused ones is wrong");
    }
    expect_usable(rank, comm);
  });
}

}  // namespace
}  // namespace hocket::multiprocess
