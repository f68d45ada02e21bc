// Ranks on several hosts: the pairs of ranks that exchange data, and the bytes between the hosts.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "engines/algorithm/hierarchy_engine.h"
#include "engines/local/local_point_to_point.h"

namespace hocket::algorithm {
namespace {

using engine::Call;
using engine::Kind;
using engine::Poll;
using engine::Task;

TEST(HostMap, NumbersHostsAndRanks) {
  const std::array hosts{4, 9, 4, 4, 1, 9};
  const HostMap map(hosts);
  EXPECT_EQ(map.ranks(), 6);
  EXPECT_EQ(map.hosts(), 3);
  EXPECT_EQ(map.members(0), (std::vector{0, 2, 3}));
  EXPECT_EQ(map.members(1), (std::vector{1, 5}));
  EXPECT_EQ(map.members(2), (std::vector{4}));
  EXPECT_EQ(map.local(3), 2);
  EXPECT_EQ(map.host_of(5), 1);
  EXPECT_EQ(map.fewest(), 1);
  EXPECT_EQ(map.most(), 3);
  EXPECT_EQ(map.lane(0), (std::vector{0, 1, 4}));
}

// Every element of every rank's part is in one piece of one lane, and pieces do not overlap.
TEST(HostBlocks, CutEverythingOnce) {
  for (int n = 1; n <= 17; ++n) {
    for (int hosts = 1; hosts <= 4; ++hosts) {
      std::vector<int> placement;
      std::vector<std::size_t> parts;
      for (int rank = 0; rank < n; ++rank) {
        placement.push_back(rank * 7 % 5 % hosts);
        parts.push_back(static_cast<std::size_t>(rank * 11 % 13));
      }
      const HostMap map(placement);
      for (int lanes = 1; lanes <= map.fewest(); ++lanes) {
        const HostBlocks blocks(map, RankParts(parts), lanes);
        std::vector<std::vector<int>> seen(static_cast<std::size_t>(n));
        std::vector<std::vector<int>> filled(static_cast<std::size_t>(lanes));
        for (int r = 0; r < n; ++r) {
          seen[static_cast<std::size_t>(r)].resize(parts[static_cast<std::size_t>(r)]);
        }
        for (int l = 0; l < lanes; ++l) {
          filled[static_cast<std::size_t>(l)].resize(blocks.lane_length(l));
        }
        blocks.for_each_overlap(
            [&](int rank, std::size_t at, int lane, std::size_t place, std::size_t length) {
              for (std::size_t i = 0; i < length; ++i) {
                ++seen[static_cast<std::size_t>(rank)].at(at + i);
                ++filled[static_cast<std::size_t>(lane)].at(place + i);
              }
            });
        for (const auto& part : seen)
          EXPECT_EQ(std::count(part.begin(), part.end(), 1), part.size());
        for (const auto& lane : filled) {
          EXPECT_EQ(std::count(lane.begin(), lane.end(), 1), lane.size());
        }
      }
    }
  }
}

// Counts the bytes that leave the host.
class Counting final : public engine::PointToPoint {
 public:
  Counting(std::unique_ptr<engine::PointToPoint> carrier, std::vector<int> hosts, int rank)
      : carrier_(std::move(carrier)), hosts_(std::move(hosts)), rank_(rank) {}
  engine::MessageId send(const engine::Envelope& to, std::span<const std::byte> bytes) override {
    if (host(to.peer) != host(rank_)) outside_ += bytes.size();
    return carrier_->send(to, bytes);
  }
  engine::MessageId recv(const engine::Envelope& from, std::span<std::byte> bytes) override {
    return carrier_->recv(from, bytes);
  }
  bool test(engine::MessageId message, engine::Envelope* received) override {
    return carrier_->test(message, received);
  }
  bool progress() override { return carrier_->progress(); }
  void cancel(engine::MessageId message) noexcept override { carrier_->cancel(message); }
  std::size_t outside() const { return outside_; }

 private:
  int host(int rank) const { return hosts_[static_cast<std::size_t>(rank)]; }
  std::unique_ptr<engine::PointToPoint> carrier_;
  std::vector<int> hosts_;
  int rank_;
  std::size_t outside_ = 0;
};

// Ranks of pretended hosts, stepped by one thread.
class Cluster {
 public:
  Cluster(std::vector<int> hosts, const HierarchyTuning& tuning)
      : hosts_(std::move(hosts)),
        fabric_(std::make_shared<engines::local::LocalFabric>(static_cast<int>(hosts_.size()))) {
    for (int rank = 0; rank < size(); ++rank) {
      auto local = std::make_unique<engines::local::LocalPointToPoint>(fabric_, rank);
      carriers_.push_back(std::make_unique<Counting>(std::move(local), hosts_, rank));
      const engine::GroupFacts facts{
          .rank = rank, .size = size(), .hosts = hosts_, .one_host = false};
      engines_.push_back(std::make_unique<HierarchyEngine>(*carriers_.back(), facts, tuning));
    }
  }
  int size() const { return static_cast<int>(hosts_.size()); }

  void run(const std::vector<Call>& calls) {
    std::vector<Task> tasks;
    for (std::size_t r = 0; r < calls.size(); ++r) tasks.push_back(engines_[r]->start(calls[r]));
    std::vector<std::size_t> pending(calls.size());
    std::iota(pending.begin(), pending.end(), std::size_t{0});
    for (int turn = 0; !pending.empty(); ++turn) {
      ASSERT_LT(turn, 100'000) << "they wait for each other";
      std::erase_if(pending, [&](std::size_t r) { return tasks[r].step() == Poll::kDone; });
    }
  }
  // Bytes that have left each host.
  std::vector<std::size_t> traffic() const {
    std::vector<std::size_t> bytes(static_cast<std::size_t>(HostMap(hosts_).hosts()));
    for (int rank = 0; rank < size(); ++rank) {
      bytes[static_cast<std::size_t>(HostMap(hosts_).host_of(rank))] +=
          carriers_[static_cast<std::size_t>(rank)]->outside();
    }
    return bytes;
  }

 private:
  std::vector<int> hosts_;
  std::shared_ptr<engines::local::LocalFabric> fabric_;
  std::vector<std::unique_ptr<Counting>> carriers_;
  std::vector<std::unique_ptr<HierarchyEngine>> engines_;
};

HierarchyTuning by_ring() {
  HierarchyTuning tuning{.short_bytes = 0};
  tuning.across.forced = Choices::parse("ring");
  return tuning;
}

// The bytes that one rank a host would send, without the others: 2 (h - 1) / h of the array.
TEST(Hierarchy, AllReduceSendsWhatOneRankAHostWould) {
  constexpr std::size_t kCount = 1200;
  for (const auto& hosts : {std::vector{0, 0, 1, 1, 2, 2},
                            std::vector{0, 1, 2, 0, 1, 2, 0},
                            std::vector{0, 0, 0, 0, 1, 2}}) {
    Cluster cluster(hosts, by_ring());
    std::vector<std::vector<std::int32_t>> in, out;
    std::vector<Call> calls;
    for (int rank = 0; rank < cluster.size(); ++rank) {
      in.emplace_back(kCount);
      for (std::size_t i = 0; i < kCount; ++i) {
        in.back()[i] = static_cast<std::int32_t>(i) * (rank + 1);
      }
      out.emplace_back(kCount);
    }
    for (std::size_t r = 0; r < in.size(); ++r) {
      calls.push_back(
          {.signature = {.kind = Kind::kAllReduce, .dtype = DType::kInt32, .count = kCount},
           .sequence = 1,
           .in = in[r].data(),
           .out = out[r].data()});
    }
    cluster.run(calls);
    const int n = cluster.size();
    for (std::size_t i = 0; i < kCount; ++i) {
      for (const auto& result : out) {
        ASSERT_EQ(result[i], static_cast<std::int32_t>(i) * (n * (n + 1) / 2));
      }
    }
    const std::size_t one_rank = kCount * 4 * 2 * 2 / 3;
    for (const std::size_t bytes : cluster.traffic()) EXPECT_EQ(bytes, one_rank);
  }
}

// Each host hears of another host's parts once.
TEST(Hierarchy, AllGatherSendsEachPartOnceToEachHost) {
  const std::vector hosts{0, 1, 1, 0, 2, 0};
  constexpr std::size_t kShare = 24;
  Cluster cluster(hosts, by_ring());
  std::vector<std::vector<std::int32_t>> in, out;
  std::vector<Call> calls;
  for (int rank = 0; rank < cluster.size(); ++rank) {
    in.emplace_back(kShare, rank + 3);
    out.emplace_back(kShare * hosts.size());
  }
  for (std::size_t r = 0; r < in.size(); ++r) {
    calls.push_back(
        {.signature = {.kind = Kind::kAllGather, .dtype = DType::kInt32, .count = kShare},
         .sequence = 1,
         .in = in[r].data(),
         .out = out[r].data()});
  }
  cluster.run(calls);
  for (const auto& result : out) {
    for (std::size_t i = 0; i < result.size(); ++i) {
      ASSERT_EQ(result[i], static_cast<std::int32_t>(i / kShare) + 3);
    }
  }
  const auto traffic = cluster.traffic();
  EXPECT_EQ(std::accumulate(traffic.begin(), traffic.end(), std::size_t{0}), 2 * 6 * kShare * 4);
}

// A broadcast leaves the root's host as often as a pipeline from host to host sends it.
TEST(Hierarchy, BroadcastReachesEachHostOnce) {
  const std::vector hosts{0, 0, 1, 1, 2, 2, 0};
  constexpr std::size_t kCount = 900;
  HierarchyTuning tuning{.short_bytes = 0};
  tuning.across.forced = Choices::parse("chain");
  Cluster cluster(hosts, tuning);
  std::vector<std::vector<std::int32_t>> arrays(hosts.size(),
                                                std::vector<std::int32_t>(kCount, -1));
  for (std::size_t i = 0; i < kCount; ++i) arrays[6][i] = static_cast<std::int32_t>(i);
  const auto sent = arrays[6];
  std::vector<Call> calls;
  for (std::size_t r = 0; r < arrays.size(); ++r) {
    calls.push_back({.signature = {.kind = Kind::kBroadcast,
                                   .dtype = DType::kInt32,
                                   .root = 6,
                                   .count = kCount},
                     .sequence = 1,
                     .in = r == 6 ? arrays[r].data() : nullptr,
                     .out = arrays[r].data()});
  }
  cluster.run(calls);
  for (const auto& result : arrays) EXPECT_EQ(result, sent);
  EXPECT_EQ(cluster.traffic(), (std::vector<std::size_t>{kCount * 4, kCount * 4, 0}));
}

// Levels are chosen where they save bytes between hosts.
TEST(Hierarchy, ScoresBelowStraightAlgorithmsForLongArrays) {
  const std::vector hosts{0, 0, 0, 0, 1, 1, 1, 1};
  const auto fabric = std::make_shared<engines::local::LocalFabric>(8);
  engines::local::LocalPointToPoint carrier(fabric, 0);
  const engine::GroupFacts facts{.rank = 0, .size = 8, .hosts = hosts, .one_host = false};
  const HierarchyEngine levels(carrier, facts);
  const AlgorithmEngine flat(carrier, facts, across_hosts(hosts, {}));
  for (const Kind kind : {Kind::kAllReduce, Kind::kBroadcast, Kind::kAllGather}) {
    const engine::Signature s{.kind = kind, .dtype = DType::kFloat32, .count = 1 << 20};
    EXPECT_LT(levels.score(s)->microseconds, flat.score(s)->microseconds) << engine::name_of(kind);
  }
  EXPECT_FALSE(levels.score({.kind = Kind::kGatherV}).has_value());
  // A user who forces a straight algorithm gets it.
  const HierarchyEngine forced(carrier, facts, {.straight = Choices::parse("all_reduce=ring")});
  EXPECT_FALSE(forced.score({.kind = Kind::kAllReduce, .count = 1 << 20}).has_value());
  EXPECT_TRUE(forced.score({.kind = Kind::kBroadcast, .count = 1 << 20}).has_value());
}

}  // namespace
}  // namespace hocket::algorithm
