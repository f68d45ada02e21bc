// Every algorithm of every collective, for every number of ranks from 1 to 17, any root, and counts
// that nothing divides. One thread steps all ranks in turns, in another order each time, so that
// every failure can be repeated.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "engines/algorithm/algorithm_engine.h"
#include "engines/local/local_point_to_point.h"
#include "hocket/error.h"
#include "sample.h"

namespace hocket::algorithm {
namespace {

using engine::Call;
using engine::Kind;
using engine::Poll;
using engine::Task;
using sample::Elements;
using sample::kUntouched;
using sample::sum;
using sample::value;

constexpr int kMostRanks = 17;

// One rank's arrays and what must become of `out`.
struct RankArrays {
  Elements in, out, wanted;
  std::vector<std::size_t> bytes, offsets;
  std::size_t own_bytes = 0;
};

// Elements of each rank's part: equal in the regular forms.
std::size_t part_of(Kind kind, int rank, std::size_t count) {
  return kind < Kind::kReduceScatterV ? count
                                      : (count * static_cast<std::size_t>(rank * 7 % 5)) / 3;
}

struct Program {
  Kind kind;
  int n;
  int root;
  std::size_t count;

  std::size_t part(int rank) const { return part_of(kind, rank, count); }
  std::size_t first(int rank) const {
    std::size_t at = 0;
    for (int r = 0; r < rank; ++r) at += part(r);
    return at;
  }
  RankArrays arrays(int rank) const;
};

void append(Elements& to, int rank, std::size_t first, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to.push_back(value(rank, first + i));
}

RankArrays Program::arrays(int rank) const {
  RankArrays a;
  const bool is_root = rank == root;
  switch (kind) {
    case Kind::kBroadcast:
      if (is_root) append(a.in, rank, 0, count);
      append(a.wanted, root, 0, count);
      break;
    case Kind::kReduce:
    case Kind::kAllReduce:
      append(a.in, rank, 0, count);
      for (std::size_t i = 0; (is_root || kind == Kind::kAllReduce) && i < count; ++i) {
        a.wanted.push_back(sum(n, i));
      }
      break;
    case Kind::kScan:
    case Kind::kExscan: {
      append(a.in, rank, 0, count);
      const int ranks = kind == Kind::kScan ? rank + 1 : rank;
      for (std::size_t i = 0; ranks > 0 && i < count; ++i) a.wanted.push_back(sum(ranks, i));
      break;
    }
    case Kind::kReduceScatter:
    case Kind::kReduceScatterV:
      append(a.in, rank, 0, first(n));
      for (std::size_t i = 0; i < part(rank); ++i) a.wanted.push_back(sum(n, first(rank) + i));
      break;
    case Kind::kAllGather:
    case Kind::kAllGatherV:
    case Kind::kGather:
    case Kind::kGatherV: {
      append(a.in, rank, 0, part(rank));
      const bool all = kind == Kind::kAllGather || kind == Kind::kAllGatherV;
      for (int r = 0; (all || is_root) && r < n; ++r) append(a.wanted, r, 0, part(r));
      break;
    }
    case Kind::kScatter:
    case Kind::kScatterV:
      if (is_root) append(a.in, rank, 0, first(n));
      append(a.wanted, root, first(rank), part(rank));
      break;
    case Kind::kAllToAll:
    case Kind::kAllToAllV:  // rank r sends every other as much as that one's part
      append(a.in, rank, 0, first(n));
      for (int r = 0; r < n; ++r) append(a.wanted, r, first(rank), part(rank));
      break;
    default:
      break;
  }
  a.out.assign(a.wanted.size(), kUntouched);
  for (int r = 0; r < n; ++r) {
    a.bytes.push_back(part(r) * 4);
    a.offsets.push_back(first(r) * 4);
  }
  a.own_bytes = part(rank) * 4;
  return a;
}

Call call_of(const Program& program, int rank, RankArrays& a, std::vector<std::size_t>& received) {
  Call call;
  call.sequence = 1;
  call.signature = {.kind = program.kind, .dtype = DType::kInt32, .root = program.root};
  const bool listed = program.kind >= Kind::kReduceScatterV;
  if (!listed) call.signature.count = program.count;
  if (program.kind == Kind::kReduceScatterV || program.kind == Kind::kAllGatherV) {
    call.signature.count = program.first(program.n);
  }
  call.in = a.in.empty() ? nullptr : a.in.data();
  call.out = a.out.empty() ? nullptr : a.out.data();
  call.own_bytes = a.own_bytes;
  call.in_parts = {a.bytes.data(), a.offsets.data()};
  call.out_parts = call.in_parts;
  if (program.kind == Kind::kAllToAllV) {  // from each, this rank's part
    const auto n = static_cast<std::size_t>(program.n);
    for (std::size_t r = 0; r < n; ++r) received.push_back(program.part(rank) * 4);
    for (std::size_t r = 0; r < n; ++r) received.push_back(r * program.part(rank) * 4);
    call.out_parts = {received.data(), received.data() + n};
  }
  return call;
}

// Runs the call on all ranks; says what is wrong.
std::string run(const Program& program, const Tuning& tuning) {
  const auto n = static_cast<std::size_t>(program.n);
  const auto fabric = std::make_shared<engines::local::LocalFabric>(program.n);
  std::vector<std::unique_ptr<engines::local::LocalPointToPoint>> carriers;
  std::vector<std::unique_ptr<AlgorithmEngine>> engines;
  std::vector<RankArrays> arrays;
  std::vector<std::vector<std::size_t>> received(n);
  for (int rank = 0; rank < program.n; ++rank) {
    carriers.push_back(std::make_unique<engines::local::LocalPointToPoint>(fabric, rank));
    const engine::GroupFacts facts{.rank = rank, .size = program.n, .hosts = {}};
    engines.push_back(std::make_unique<AlgorithmEngine>(*carriers.back(), facts, tuning));
    arrays.push_back(program.arrays(rank));
  }
  std::vector<Task> tasks;
  for (std::size_t r = 0; r < n; ++r) {
    tasks.push_back(
        engines[r]->start(call_of(program, static_cast<int>(r), arrays[r], received[r])));
  }
  std::vector<std::size_t> pending(n);
  std::iota(pending.begin(), pending.end(), std::size_t{0});
  std::minstd_rand random(static_cast<unsigned>(program.count * 31 + n));
  constexpr int kMostTurns = 20'000;
  for (int turn = 0; !pending.empty(); ++turn) {
    if (turn == kMostTurns) return "they wait for each other";
    std::shuffle(pending.begin(), pending.end(), random);
    std::erase_if(pending, [&](std::size_t r) { return tasks[r].step() == Poll::kDone; });
  }
  for (std::size_t r = 0; r < n; ++r) {
    if (arrays[r].out != arrays[r].wanted) return "rank " + std::to_string(r) + " has it wrong";
  }
  return {};
}

constexpr Kind kKinds[] = {Kind::kBarrier,
                           Kind::kBroadcast,
                           Kind::kReduce,
                           Kind::kAllReduce,
                           Kind::kScan,
                           Kind::kExscan,
                           Kind::kReduceScatter,
                           Kind::kAllGather,
                           Kind::kGather,
                           Kind::kScatter,
                           Kind::kAllToAll,
                           Kind::kReduceScatterV,
                           Kind::kAllGatherV,
                           Kind::kGatherV,
                           Kind::kScatterV,
                           Kind::kAllToAllV};

class Ways : public testing::TestWithParam<Kind> {};

TEST_P(Ways, AreRightForEverySizeRootAndCount) {
  for (const Way& way : ways_of(GetParam())) {
    Tuning tuning{.scratch_bytes = 200, .chunk_bytes = 64};
    tuning.forced.set(way.kind, way.algorithm);
    for (int n = 1; n <= kMostRanks; ++n) {
      for (const std::size_t count : {0, 1, 3, 50, 129}) {
        const Program program{way.kind, n, static_cast<int>(count) * 5 % n, count};
        EXPECT_EQ(run(program, tuning), "")
            << engine::name_of(way.kind) << " by " << name_of(way.algorithm) << ", " << n
            << " ranks, " << count << " elements, root " << program.root;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Every, Ways, testing::ValuesIn(kKinds), [](const auto& parameter) {
  return std::string(engine::name_of(parameter.param));
});

std::string run_all_ways(Kind kind, int n, std::size_t count, Tuning tuning) {
  for (const Way& way : ways_of(kind)) {
    tuning.forced.set(way.kind, way.algorithm);
    const std::string wrong = run({way.kind, n, n / 2, count}, tuning);
    if (!wrong.empty()) return std::string(name_of(way.algorithm)) + ": " + wrong;
  }
  return {};
}

TEST(WaysOfMany, TakeTurnsWhereNotAllAreServedAtOnce) {
  for (const Kind kind : {Kind::kAllReduce,
                          Kind::kReduceScatter,
                          Kind::kReduceScatterV,
                          Kind::kAllGather,
                          Kind::kAllToAll}) {
    for (const std::size_t count : {0, 2, 140}) {
      EXPECT_EQ(run_all_ways(kind, kMostPeersAtOnce + 7, count, {.scratch_bytes = 4096}), "")
          << engine::name_of(kind) << ", " << count << " elements";
    }
  }
}

TEST(WaysOfMuch, HaveTwoRoundsUnderWay) {
  for (const Kind kind : {Kind::kAllReduce, Kind::kReduceScatter, Kind::kReduce}) {
    for (const int n : {2, 3}) {
      EXPECT_EQ(run_all_ways(kind, n, 300'007, {.scratch_bytes = 300'000}), "")
          << engine::name_of(kind) << ", " << n << " ranks";
    }
  }
}

TEST(Choices, AreReadAndRefused) {
  const Choices choices = Choices::parse("ring, broadcast=chain");
  EXPECT_EQ(choices.of(Kind::kAllReduce), Algorithm::kRing);
  EXPECT_EQ(choices.of(Kind::kAllGatherV), Algorithm::kRing);
  EXPECT_EQ(choices.of(Kind::kBroadcast), Algorithm::kChain);
  EXPECT_FALSE(choices.of(Kind::kGather).has_value());
  EXPECT_THROW(Choices::parse("spiral"), InvalidArgument);
  EXPECT_THROW(Choices::parse("gather=ring"), InvalidArgument);
  EXPECT_THROW(Choices::parse("dance=ring"), InvalidArgument);
}

// If floats have to be added in order, algorithms that keep no order are not chosen, unless forced.
TEST(Choice, KeepsOrderWhereThatIsAskedFor) {
  const engine::GroupFacts facts{.rank = 0, .size = 16, .hosts = {}};
  const auto fabric = std::make_shared<engines::local::LocalFabric>(16);
  engines::local::LocalPointToPoint carrier(fabric, 0);
  for (std::uint64_t count = 1; count < (std::uint64_t{1} << 28); count *= 8) {
    const engine::Signature s{.kind = Kind::kAllReduce, .dtype = DType::kFloat32, .count = count};
    const auto chosen = AlgorithmEngine(carrier, facts, {.ordered = true}).choose(s).algorithm;
    EXPECT_TRUE(chosen == Algorithm::kGathered || chosen == Algorithm::kScattered);
  }
  Tuning forced{.ordered = true};
  forced.forced.set(Kind::kAllReduce, Algorithm::kRing);
  const engine::Signature s{.kind = Kind::kAllReduce, .dtype = DType::kFloat32, .count = 5};
  EXPECT_EQ(AlgorithmEngine(carrier, facts, forced).choose(s).algorithm, Algorithm::kRing);
}

// The shape of the model: few rounds where arrays are short, few bytes where they are long.
TEST(CostModel, PrefersRoundsOrBytes) {
  const auto chosen = [](Kind kind, int n, std::uint64_t count) {
    const auto fabric = std::make_shared<engines::local::LocalFabric>(n);
    engines::local::LocalPointToPoint carrier(fabric, 0);
    const engine::GroupFacts facts{.rank = 0, .size = n, .hosts = {}};
    return AlgorithmEngine(carrier, facts, {.network = kTcp, .ordered = false})
        .choose({.kind = kind, .dtype = DType::kFloat32, .count = count})
        .algorithm;
  };
  EXPECT_EQ(chosen(Kind::kAllReduce, 64, 4), Algorithm::kRecursiveDoubling);
  EXPECT_EQ(chosen(Kind::kAllReduce, 64, 1 << 20), Algorithm::kRabenseifner);
  EXPECT_EQ(chosen(Kind::kAllReduce, 2, 1 << 18), Algorithm::kRing);
  // A ring would have more data in flight than the caches hold.
  EXPECT_EQ(chosen(Kind::kAllReduce, 2, 1 << 22), Algorithm::kScattered);
  // A ring would need memory that the system allocates each time.
  EXPECT_EQ(chosen(Kind::kAllReduce, 3, 1 << 24), Algorithm::kScattered);
  EXPECT_EQ(chosen(Kind::kBroadcast, 16, 4), Algorithm::kBinomial);
  EXPECT_NE(chosen(Kind::kBroadcast, 16, 1 << 24), Algorithm::kBinomial);
  EXPECT_EQ(chosen(Kind::kAllToAll, 64, 1), Algorithm::kBruck);
  EXPECT_EQ(chosen(Kind::kAllToAll, 64, 1 << 16), Algorithm::kPairwise);
}

}  // namespace
}  // namespace hocket::algorithm
