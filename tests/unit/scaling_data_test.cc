// The simulation that docs/scaling.md comes from, carrying data: what it simulates are the
// collectives as they are. Here nothing that is computed costs time.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engines/algorithm/hierarchy_engine.h"
#include "sample.h"
#include "simulation.h"

namespace hocket::scaling {
namespace {

using algorithm::AlgorithmEngine;
using algorithm::Choices;
using algorithm::HierarchyEngine;
using engine::CollectiveEngine;
using engine::Kind;
using sample::Elements;
using sample::kUntouched;
using sample::sum;
using sample::value;

struct Program {
  Kind kind;
  int n;
  int root;
  std::size_t count;  // of the array, or of a rank's share

  bool is_whole() const {
    return kind == Kind::kAllReduce || kind == Kind::kBroadcast || kind == Kind::kReduce ||
           kind == Kind::kScan || kind == Kind::kExscan;
  }
  std::size_t all() const { return is_whole() ? count : count * static_cast<std::size_t>(n); }
  // Elements of a rank's two arrays.
  std::size_t in_length(int rank) const {
    if (kind == Kind::kBroadcast || kind == Kind::kScatter) return rank == root ? all() : 0;
    return kind == Kind::kAllGather || kind == Kind::kGather ? count : all();
  }
  std::size_t out_length(int rank) const {
    if (kind == Kind::kReduce || kind == Kind::kGather) return rank == root ? all() : 0;
    if (kind == Kind::kExscan && rank == 0) return 0;
    return kind == Kind::kReduceScatter || kind == Kind::kScatter ? count : all();
  }
  std::int32_t wanted(int rank, std::size_t i) const {
    const auto r = static_cast<std::size_t>(rank);
    const int from = is_whole() ? 0 : static_cast<int>(i / count);
    switch (kind) {
      case Kind::kBroadcast:
        return value(root, i);
      case Kind::kReduce:
      case Kind::kAllReduce:
        return sum(n, i);
      case Kind::kScan:
        return sum(rank + 1, i);
      case Kind::kExscan:
        return sum(rank, i);
      case Kind::kReduceScatter:
        return sum(n, r * count + i);
      case Kind::kScatter:
        return value(root, r * count + i);
      case Kind::kAllToAll:
        return value(from, r * count + i % count);
      default:  // gathers
        return value(from, i % count);
    }
  }
};

// Ranks, their arrays and engines; runs one call and checks what came of it.
double run(const Program& p, const Cluster& cluster, const std::string& way) {
  Simulation simulation(cluster, Simulation::Bytes::kMove);
  std::vector<std::unique_ptr<CollectiveEngine>> engines;
  std::vector<Elements> in, out;
  for (int rank = 0; rank < p.n; ++rank) {
    const engine::GroupFacts facts{
        .rank = rank, .size = p.n, .hosts = cluster.hosts, .one_host = false};
    engine::PointToPoint& carrier = simulation.carrier(rank);
    if (way == "hierarchy") {
      engines.push_back(std::make_unique<HierarchyEngine>(carrier, facts));
    } else {
      engines.push_back(std::make_unique<AlgorithmEngine>(
          carrier, facts, algorithm::across_hosts(cluster.hosts, Choices::parse(way))));
    }
    in.emplace_back(p.in_length(rank));
    for (std::size_t i = 0; i < in.back().size(); ++i) in.back()[i] = value(rank, i);
    out.emplace_back(p.out_length(rank), kUntouched);
  }
  const double us = simulation.run([&](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    return engines[r]->start(
        {.signature = {.kind = p.kind, .dtype = DType::kInt32, .root = p.root, .count = p.count},
         .sequence = 1,
         .in = in[r].empty() ? nullptr : in[r].data(),
         .out = out[r].empty() ? nullptr : out[r].data()});
  });
  for (int rank = 0; rank < p.n; ++rank) {
    const Elements& result = out[static_cast<std::size_t>(rank)];
    for (std::size_t i = 0; i < result.size(); ++i) {
      if (result[i] == p.wanted(rank, i)) continue;
      ADD_FAILURE() << engine::name_of(p.kind) << " by " << way << ", " << p.n << " ranks, rank "
                    << rank << ", element " << i << ": " << result[i] << " for "
                    << p.wanted(rank, i);
      return us;
    }
  }
  return us;
}

constexpr Kind kKinds[] = {Kind::kBroadcast,
                           Kind::kReduce,
                           Kind::kAllReduce,
                           Kind::kScan,
                           Kind::kExscan,
                           Kind::kReduceScatter,
                           Kind::kAllGather,
                           Kind::kGather,
                           Kind::kScatter,
                           Kind::kAllToAll};

TEST(Simulation, CarriesEveryAlgorithm) {
  for (const int n : {8, 13, 64}) {
    for (const Kind kind : kKinds) {
      for (const auto& way : algorithm::ways_of(kind)) {
        const std::string name(algorithm::name_of(way.algorithm));
        const std::string forced = std::string(engine::name_of(kind)) + "=" + name;
        run({.kind = kind, .n = n, .root = n / 3, .count = 77}, cluster_of(n, 1), forced);
      }
    }
  }
}

// More peers than have messages under way at once.
TEST(Simulation, CarriesWindowsOfMessages) {
  for (const char* way : {"all_gather=direct", "reduce_scatter=pairwise"}) {
    const Kind kind = way[0] == 'a' ? Kind::kAllGather : Kind::kReduceScatter;
    run({.kind = kind, .n = 150, .root = 0, .count = 5}, cluster_of(150, 1), way);
  }
}

// Hosts of as many ranks each, and others.
TEST(Simulation, CarriesTheHierarchy) {
  for (const int n : {8, 13, 64}) {
    for (const Kind kind : kKinds) {
      if (kind == Kind::kGather || kind == Kind::kScatter) continue;
      for (const std::size_t count : {std::size_t{3}, std::size_t{900}}) {
        run({.kind = kind, .n = n, .root = n / 3, .count = count}, cluster_of(n, 4), "hierarchy");
      }
    }
  }
}

// alpha + beta * bytes for a message, in whole microseconds so that nothing is rounded.
Cluster plain(int n) {
  Cluster cluster = cluster_of(n, 1);
  cluster.across = {.alpha = 10, .overhead = 2, .beta = 0.001, .gamma = 0};
  return cluster;
}

// 2 (n - 1) rounds of a part each, where the parts are alike.
TEST(Simulation, TakesTheTimeOfARing) {
  for (const int n : {2, 8, 9, 64}) {
    const std::size_t part = 500;
    const double us = run(
        {.kind = Kind::kAllReduce, .n = n, .root = 0, .count = part * static_cast<std::size_t>(n)},
        plain(n),
        "all_reduce=ring");
    EXPECT_DOUBLE_EQ(us, 2 * (n - 1) * (10 + 0.001 * part * 4)) << n;
  }
}

// A round a doubling, of the whole array each.
TEST(Simulation, TakesTheTimeOfABinomialTree) {
  for (const int n : {2, 8, 64}) {
    const double us = run({.kind = Kind::kBroadcast, .n = n, .root = 1, .count = 2000},
                          plain(n),
                          "broadcast=binomial");
    EXPECT_DOUBLE_EQ(us, algorithm::doublings(n) * (10 + 0.001 * 8000)) << n;
  }
}

// All of a host's ranks send through one port: the last message has waited for the others.
TEST(Simulation, SharesThePortsOfHosts) {
  constexpr int kRanks = 8;
  Cluster cluster = plain(kRanks);
  for (int rank = 0; rank < kRanks; ++rank) {
    cluster.hosts[static_cast<std::size_t>(rank)] = rank < kRanks / 2 ? 0 : 1;
  }
  Simulation simulation(cluster, Simulation::Bytes::kCount);
  std::byte* const anywhere = nullptr;
  const double us = simulation.run([&](int rank) -> engine::Task {
    return [](engine::PointToPoint& carrier, int self, std::byte* at) -> engine::Task {
      const int peer = (self + kRanks / 2) % kRanks;
      const engine::Envelope to{.peer = peer, .count = 50'000};
      const auto message = self < kRanks / 2 ? carrier.send(to, {at, std::size_t{50'000}})
                                             : carrier.recv(to, {at, std::size_t{50'000}});
      co_await engine::until([&] { return carrier.test(message, nullptr); });
    }(simulation.carrier(rank), rank, anywhere);
  });
  EXPECT_DOUBLE_EQ(us, 10 + 4 * 50);
  EXPECT_EQ(simulation.bytes_between_hosts(), 200'000u);
}

// A rank that waits forever gets an error that says so.
TEST(Simulation, EndsWhereRanksWaitForEver) {
  Simulation simulation(cluster_of(2, 1), Simulation::Bytes::kCount);
  EXPECT_THROW(simulation.run([&](int rank) -> engine::Task {
    return [](engine::PointToPoint& carrier, int self) -> engine::Task {
      const auto message = carrier.recv({.peer = 1 - self}, {});
      co_await engine::until([&] { return carrier.test(message, nullptr); });
    }(simulation.carrier(rank), rank);
  }),
               std::logic_error);
}

}  // namespace
}  // namespace hocket::scaling
