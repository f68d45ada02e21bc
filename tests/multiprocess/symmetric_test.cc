// Symmetric arrays between processes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>

#include "collectives.h"
#include "ranks.h"

namespace hocket::multiprocess {
namespace {

std::int64_t value(int rank, std::size_t i) {
  return 100'000 * (rank + 1) + static_cast<std::int64_t>(i);
}
void fill(std::span<std::int64_t> array, int rank) {
  for (std::size_t i = 0; i < array.size(); ++i) array[i] = value(rank, i);
}
std::span<std::int64_t> elements(ArrayView view) {
  return {static_cast<std::int64_t*>(view.data()), view.count()};
}

TEST(Symmetric, ArraysAreZeroAndSeenByPeers) {
  run_job({.size = 3}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    for (const std::size_t count : {1, 513, 100'000}) {
      auto array = comm.symmetric().empty<std::int64_t>(count);
      const auto own = elements(array.local());
      rank.check(std::count(own.begin(), own.end(), 0) == static_cast<std::ptrdiff_t>(count),
                 "a new array is not zero");
      rank.check(reinterpret_cast<std::uintptr_t>(own.data()) % 64 == 0, "badly aligned");
      comm.barrier();
      fill(own, rank.rank());
      comm.barrier();
      for (int peer = 0; peer < 3; ++peer) {
        const auto theirs = elements(array.peer(peer));
        rank.check(theirs.size() == count && theirs[count - 1] == value(peer, count - 1),
                   fmt::format("rank {}'s part is not what it wrote", peer));
      }
      rank.check(outcome_of([&] { array.peer(3); }).kind == "InvalidArgument", "peer 3 of 3");
      comm.barrier();
    }
  });
}

// Each collective on symmetric arrays, ordinary ones and both, in slices: always the same result.
void compare(const Rank& rank, Communicator& comm, Communicator& owner, std::size_t share) {
  const auto n = static_cast<std::size_t>(comm.size());
  const std::size_t room = share * n + 64;
  auto first = owner.symmetric().empty<std::int64_t>(room);
  auto second = owner.symmetric().empty<std::int64_t>(room);
  std::vector<std::int64_t> ordinary_in(room);
  std::vector<std::int64_t> ordinary_out(room);
  if (!comm.is_member()) return;
  using Call = std::function<void(ConstArrayView, ArrayView)>;
  struct Case {
    const char* name;
    std::size_t in;
    std::size_t out;
    Call call;
  };
  const Case cases[] = {
      {"all_reduce", share, share, [&](auto in, auto out) { comm.all_reduce(in, out); }},
      {"reduce", share, share, [&](auto in, auto out) { comm.reduce(in, out, {.root = 1}); }},
      {"broadcast", share, share, [&](auto in, auto out) { comm.broadcast(in, out, {.root = 1}); }},
      {"reduce_scatter",
       share * n,
       share,
       [&](auto in, auto out) { comm.reduce_scatter(in, out); }},
      {"all_gather", share, share * n, [&](auto in, auto out) { comm.all_gather(in, out); }},
      {"all_to_all", share * n, share * n, [&](auto in, auto out) { comm.all_to_all(in, out); }},
  };
  for (const Case& each : cases) {
    for (const bool symmetric_in : {false, true}) {
      for (const bool symmetric_out : {false, true}) {
        for (const std::size_t offset : {0, 24}) {
          ArrayView in = symmetric_in ? first.local() : ArrayView(ordinary_in);
          ArrayView out = symmetric_out ? second.local() : ArrayView(ordinary_out);
          in = in.slice(offset, each.in);
          out = out.slice(offset, each.out);
          fill(elements(in), comm.rank());
          std::fill(elements(out).begin(), elements(out).end(), -1);
          comm.barrier();
          each.call(in, out);
          const std::vector<std::int64_t> result(elements(out).begin(), elements(out).end());

          std::vector<std::int64_t> expected_in(each.in);
          std::vector<std::int64_t> expected(each.out, -1);
          fill(expected_in, comm.rank());
          each.call(ConstArrayView(expected_in), ArrayView(expected));
          rank.check(result == expected,
                     fmt::format("{} of {}: in {}, out {}, at {} differs from ordinary memory",
                                 each.name,
                                 share,
                                 symmetric_in ? "symmetric" : "ordinary",
                                 symmetric_out ? "symmetric" : "ordinary",
                                 offset));
        }
      }
    }
  }
  // In place.
  for (const std::size_t count : {share, share * n}) {
    const ArrayView view = first.local().slice(8, count);
    fill(elements(view), comm.rank());
    comm.barrier();
    comm.all_reduce(view);
    std::vector<std::int64_t> expected(count);
    fill(expected, comm.rank());
    comm.all_reduce(expected);
    rank.check(std::equal(expected.begin(), expected.end(), elements(view).begin()),
               fmt::format("all_reduce in place of {}", count));
  }
}

TEST(Symmetric, CollectivesEqualThoseOnOrdinaryMemory) {
  for (const char* engine : {"shm", "algorithm"}) {
    for (const int size : {2, 3, 5}) {
      SCOPED_TRACE(fmt::format("{} ranks, {}", size, engine));
      run_job({.size = size, .engines = {engine}}, [](Rank& rank) {
        World world = rank.join();
        for (const std::size_t share : {1, 300, 1000, 40'000}) {
          rank.stage(fmt::format("share {}", share));
          compare(rank, world.communicator(), world.communicator(), share);
        }
      });
    }
  }
}

TEST(Symmetric, ArraysOfTheWorldServeItsSubsets) {
  run_job({.size = 4}, [](Rank& rank) {
    World world = rank.join();
    const std::vector<int> ranks{3, 1, 0};
    auto subset = world.communicator().new_group(ranks);
    for (const std::size_t share : {5, 2000}) {
      compare(rank, subset, world.communicator(), share);
      world.communicator().barrier();
    }
  });
}

TEST(Symmetric, ManyArraysMadeAndFreedLeaveNothing) {
  run_job({.size = 2, .segment_bytes = std::size_t{64} << 20}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    // Far more than the segment holds, if they were kept.
    for (int i = 0; i < 3000; ++i) {
      if (i % 100 == 0) rank.stage(fmt::format("array {}", i));
      const std::size_t count = 1000 + 37 * static_cast<std::size_t>(i % 50) * 500;
      auto array = comm.symmetric().empty<float>(count);
      rank.check(array.data<float>()[count - 1] == 0, "a new array is not zero");
      array.data<float>()[count - 1] = 1;
      if (i % 2 == 0) array.free();
    }
    // Large ones again and again, with small ones living on.
    std::vector<SymmetricArray> kept;
    for (int i = 0; i < 40; ++i) {
      kept.push_back(comm.symmetric().empty<float>(10));
      auto array = comm.symmetric().empty<float>(std::size_t{6} << 20);
      comm.all_reduce(array);
    }
  });
}

TEST(Symmetric, WithoutRoomIsAClearErrorOnAll) {
  const auto ranks = run_job({.size = 2, .segment_bytes = std::size_t{64} << 20}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    std::vector<SymmetricArray> arrays;
    rank.attempt("call", [&] {
      for (;;) arrays.push_back(comm.symmetric().empty<float>(std::size_t{4} << 20));
    });
    rank.check(arrays.size() >= 2, "hardly any arrays fit");
    arrays.clear();
    auto again = comm.symmetric().empty<float>(std::size_t{8} << 20);
    const std::string wrong = wrong_results(comm, 1, 10);
    rank.check(wrong.empty(), wrong);
  });
  for (const Result& rank : ranks) {
    EXPECT_EQ(rank.get("call"), "InvalidArgument");
    EXPECT_NE(rank.get("call.message").find("HOCKET_SEGMENT_GIB"), std::string::npos)
        << rank.get("call.message");
  }
}

TEST(Symmetric, ArraysOutliveTheirCommunicator) {
  run_job({.size = 2}, [](Rank& rank) {
    World world = rank.join();
    std::optional<Communicator> comm(world.communicator().duplicate());
    auto array = comm->symmetric().empty<std::int64_t>(5000);
    comm->close();
    comm.reset();
    fill(elements(array.local()), rank.rank());
    world.communicator().barrier();
    rank.check(elements(array.peer(1 - rank.rank()))[4999] == value(1 - rank.rank(), 4999),
               "the peer's part is not what it wrote");
    world.communicator().barrier();
    world.communicator().all_reduce(array);
    rank.check(elements(array.local())[0] == value(0, 0) + value(1, 0), "the sum is wrong");
  });
}

}  // namespace
}  // namespace hocket::multiprocess
