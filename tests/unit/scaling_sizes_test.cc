// The simulation of sizes alone, in a small form. Times match the cost model if nothing is shared.
// More ranks and more bytes take more time. Choices are near the best.
#include <gtest/gtest.h>

#include <string>

#include "pages.h"
#include "simulation.h"
#include "study.h"

namespace hocket::scaling {
namespace {

using algorithm::Algorithm;
using engine::Kind;

constexpr std::uint64_t kMost = 1'000'000;
constexpr double kGamma = algorithm::kTcp.gamma;

double time_of(const Case& c, Algorithm algorithm) {
  return simulate(c, {algorithm}, kMost)->microseconds;
}

TEST(Study, AgreesWithTheModelWhereNothingIsShared) {
  constexpr std::size_t kBytes = 1 << 20;
  for (const int n : {8, 16, 64}) {
    const Case scatter{.kind = Kind::kReduceScatter, .bytes = kBytes, .ranks = n};
    EXPECT_NEAR(time_of(scatter, Algorithm::kRing), predicted(scatter, {Algorithm::kRing}), 0.01);
    const Case broadcast{.kind = Kind::kBroadcast, .bytes = kBytes, .ranks = n};
    // The root's own copy comes before.
    EXPECT_NEAR(time_of(broadcast, Algorithm::kBinomial),
                predicted(broadcast, {Algorithm::kBinomial}) + kGamma * kBytes,
                0.01);
    const Case all{.kind = Kind::kAllReduce, .bytes = kBytes, .ranks = n};
    EXPECT_NEAR(time_of(all, Algorithm::kRing), predicted(all, {Algorithm::kRing}), 0.01);
    EXPECT_NEAR(time_of(all, Algorithm::kRecursiveDoubling),
                predicted(all, {Algorithm::kRecursiveDoubling}),
                0.01);
  }
}

TEST(Study, TakesLongerForMore) {
  for (const Kind kind : {Kind::kAllReduce, Kind::kBroadcast, Kind::kAllGather}) {
    for (const auto& way : algorithm::ways_of(kind)) {
      double before = 0;
      for (const int n : {8, 16, 32, 64}) {
        const double us = time_of({.kind = kind, .bytes = 8, .ranks = n}, way.algorithm);
        EXPECT_GT(us, before) << algorithm::name_of(way.algorithm) << " of " << n;
        before = us;
      }
      before = 0;
      for (const std::size_t bytes : {1 << 10, 1 << 16, 1 << 20, 1 << 24}) {
        const double us = time_of({.kind = kind, .bytes = bytes, .ranks = 32}, way.algorithm);
        EXPECT_GT(us, before) << algorithm::name_of(way.algorithm) << " of " << bytes << " bytes";
        before = us;
      }
    }
  }
}

TEST(Study, DoesTheSameEachTime) {
  const Case c{.kind = Kind::kAllReduce, .bytes = 100'000, .ranks = 48, .per_host = 8};
  for (const Route& route : routes_of(c)) {
    const auto first = simulate(c, route, kMost);
    const auto second = simulate(c, route, kMost);
    EXPECT_EQ(first->microseconds, second->microseconds) << route.name();
    EXPECT_EQ(first->messages, second->messages) << route.name();
  }
}

// The bytes that leave the hosts are those of one rank a host: 2 (h - 1) / h of the array from
// each.
TEST(Study, TheHierarchySparesTheNetwork) {
  const Case c{.kind = Kind::kAllReduce, .bytes = 1 << 20, .ranks = 64, .per_host = 8};
  const auto levels = simulate(c, {}, kMost);
  const auto straight = simulate(c, {Algorithm::kRabenseifner}, kMost);
  EXPECT_EQ(levels->bytes_between_hosts, 2 * 7 * c.bytes);
  EXPECT_GT(straight->bytes_between_hosts, 4 * levels->bytes_between_hosts);
  EXPECT_LT(levels->microseconds, straight->microseconds);
}

// However many ranks: messages that are under way do not grow with them.
TEST(Study, MessagesUnderWayAreBounded) {
  for (const Kind kind : {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllToAll}) {
    for (const auto& way : algorithm::ways_of(kind)) {
      const Case c{.kind = kind, .bytes = 1 << 16, .ranks = 300};
      EXPECT_LE(simulate(c, {way.algorithm}, kMost)->most_of_a_rank, 130u)
          << engine::name_of(kind) << " by " << algorithm::name_of(way.algorithm);
    }
  }
}

TEST(Study, ChoicesAreNearTheBest) {
  for (const int per_host : {1, 4}) {
    for (const Kind kind : {Kind::kAllReduce, Kind::kBroadcast, Kind::kAllGather}) {
      for (const std::size_t bytes : {std::size_t{8}, std::size_t{1} << 20}) {
        const Grid grid = simulate_all(
            {.kind = kind, .bytes = bytes, .ranks = 16, .per_host = per_host}, {16, 64}, kMost);
        for (std::size_t i = 0; i < grid.ranks.size(); ++i) {
          EXPECT_LE(excess(grid, i).value_or(99), 1.35) << table_of(grid);
        }
      }
    }
  }
}

TEST(Study, StopsAtItsBound) {
  const Case c{.kind = Kind::kAllReduce, .bytes = 8, .ranks = 64};
  EXPECT_FALSE(simulate(c, {Algorithm::kRing}, 1000).has_value());
  const Grid grid = simulate_all(c, {64}, 1000);
  EXPECT_NE(table_of(grid).find("| ring | *"), std::string::npos) << table_of(grid);
}

}  // namespace
}  // namespace hocket::scaling
