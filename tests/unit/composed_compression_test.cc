// Compressed and hierarchical reductions, on ranks that are threads.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "calls/composed/min_max.h"
#include "hocket/compression.h"
#include "hocket/group.h"

namespace hocket {
namespace {

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

// Differs by rank and place; ranges of blocks differ by orders of magnitude.
std::vector<float> values_of(int rank, std::size_t count) {
  std::mt19937 generator(static_cast<unsigned>(rank) + 17);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto block = static_cast<float>(i / kCompressionBlock % 3);
    values[i] = normal(generator) * std::pow(10.0F, block) + 5 * block;
  }
  return values;
}

double range_of(const std::vector<float>& values, std::size_t first, std::size_t end) {
  const auto [least, greatest] = std::minmax_element(values.begin() + static_cast<long>(first),
                                                     values.begin() + static_cast<long>(end));
  return static_cast<double>(*greatest) - *least;
}

TEST(MinMax, IsWithinHalfAStep) {
  for (const std::size_t count : {1, 2, 15, 16, 17, 1023, 1024, 1025, 5000}) {
    const std::vector<float> in = values_of(3, count);
    std::vector<std::byte> packed(composed::compressed_size(count) + 1, std::byte{0x5a});
    composed::compress(in.data(), count, packed.data());
    EXPECT_EQ(packed.back(), std::byte{0x5a}) << count;
    std::vector<float> out(count);
    composed::decompress(packed.data(), count, out.data());
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t first = i / kCompressionBlock * kCompressionBlock;
      const double range = range_of(in, first, std::min(count, first + kCompressionBlock));
      ASSERT_LE(std::abs(double{in[i]} - out[i]), range / 510 * 1.0001 + 1e-6 * std::abs(in[i]))
          << i << " of " << count;
    }
  }
}

TEST(MinMax, TakesExtremes) {
  constexpr float kMost = std::numeric_limits<float>::max();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto round_trip = [](std::vector<float> in) {
    std::vector<std::byte> packed(composed::compressed_size(in.size()));
    composed::compress(in.data(), in.size(), packed.data());
    composed::decompress(packed.data(), in.size(), in.data());
    return in;
  };
  EXPECT_EQ(round_trip({7.25F, 7.25F}), (std::vector<float>{7.25F, 7.25F}));
  EXPECT_EQ(round_trip({-kMost, kMost})[0], -kMost);
  EXPECT_NEAR(round_trip({-kMost, kMost})[1], kMost, kMost * 1e-6);
  for (const float value : round_trip({1, kInfinity, 2})) EXPECT_TRUE(std::isnan(value));
  for (const float value : round_trip({1, std::nanf(""), 2})) EXPECT_TRUE(std::isnan(value));
  const float tiny = std::numeric_limits<float>::denorm_min();
  for (const float value : round_trip({0, tiny})) EXPECT_LE(value, tiny);
  EXPECT_TRUE(round_trip({}).empty());
}

class Compressed : public testing::TestWithParam<int> {};

// The documented error bound, for every element; blocks are those of the shares.
TEST_P(Compressed, IsWithinItsBound) {
  const int n = GetParam();
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{1000}, std::size_t{10007}}) {
    std::vector<std::vector<float>> in;
    for (int rank = 0; rank < n; ++rank) in.push_back(values_of(rank, count));
    const std::size_t share =
        (count + static_cast<std::size_t>(n) - 1) / static_cast<std::size_t>(n);
    run_threads(n, [&](Communicator& comm) {
      for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAvg}) {
        std::vector<float> x = in[static_cast<std::size_t>(comm.rank())];
        compressed_all_reduce(comm, x, {.op = op});
        const double divisor = op == ReduceOp::kAvg ? n : 1;
        for (std::size_t i = 0; i < count; ++i) {
          const std::size_t start = i / share * share;
          const std::size_t first = start + (i - start) / kCompressionBlock * kCompressionBlock;
          const std::size_t end = std::min({first + kCompressionBlock, start + share, count});
          double sum = 0, ranges = 0, size = 0;
          for (const auto& theirs : in) {
            sum += theirs[i];
            size += std::abs(theirs[i]);
            ranges += range_of(theirs, first, end);
          }
          const double error = std::abs(x[i] - sum / divisor);
          require(error <= (ranges / 254 + 1e-6 * size) / divisor,
                  "element " + std::to_string(i) + " is off by " + std::to_string(error));
        }
        std::vector<float> lowest(x), highest(x);
        comm.all_reduce(lowest, {.op = ReduceOp::kMin});
        comm.all_reduce(highest, {.op = ReduceOp::kMax});
        require(lowest == highest, "ranks differ");
      }
    });
  }
}
INSTANTIATE_TEST_SUITE_P(Ranks, Compressed, testing::Values(1, 2, 3, 4, 5));

TEST(CompressedTypes, OthersAreTakenOrRefused) {
  run_threads(2, [](Communicator& comm) {
    std::vector<double> wide(100, 1.5 + comm.rank());
    compressed_all_reduce(comm, wide);
    require(wide == std::vector<double>(100, 4.0), "float64");
    std::vector<bfloat16> half(10, bfloat16(1.0F + static_cast<float>(comm.rank())));
    compressed_all_reduce(comm, half, {.op = ReduceOp::kAvg});
    require(static_cast<float>(half[9]) == 1.5F, "bfloat16");
    std::vector<int> whole(3);
    bool refused = false;
    try {
      compressed_all_reduce(comm, whole);
    } catch (const InvalidArgument& error) {
      refused = std::string(error.what()).find("holds int32") != std::string::npos;
    }
    require(refused, "int32");
    refused = false;
    try {
      compressed_all_reduce(comm, wide, {.op = comm.rank() == 0 ? ReduceOp::kMax : ReduceOp::kSum});
    } catch (const InvalidArgument&) {
      refused = true;
    }
    require(refused, "max on one rank");
    compressed_all_reduce(comm, wide);
  });
}

// Nodes of 1, 2, 3, ... ranks.
int node_of(int rank) {
  int node = 0;
  for (int first = 0; first + node + 1 <= rank; first += node + 1, ++node) {
  }
  return node;
}

struct Nodes {
  Communicator within, between;
};
Nodes make_nodes(Communicator& comm) {
  Communicator within = comm.split({.color = node_of(comm.rank())});
  const int color = within.rank() == 0 ? 0 : -1;
  Communicator between = comm.split({.color = color});
  return {std::move(within), std::move(between)};
}

class Hierarchical : public testing::TestWithParam<int> {};

TEST_P(Hierarchical, EveryRankCountsAlike) {
  run_threads(GetParam(), [](Communicator& comm) {
    Nodes nodes = make_nodes(comm);
    const int n = comm.size();
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kMin, ReduceOp::kMax}) {
      std::vector<double> x(37), wanted(37);
      for (std::size_t i = 0; i < x.size(); ++i) {
        x[i] = static_cast<double>(i) + 10 * comm.rank();
      }
      wanted = x;
      comm.all_reduce(wanted, {.op = op});
      hierarchical_all_reduce(nodes.within, nodes.between, x, {.op = op});
      for (std::size_t i = 0; i < x.size(); ++i) {
        require(std::abs(x[i] - wanted[i]) < 1e-9, "op " + std::string(name_of(op)));
      }
    }
    std::vector<int> whole(5, -1 - comm.rank());
    hierarchical_all_reduce(nodes.within, nodes.between, whole, {.op = ReduceOp::kAvg});
    require(whole[4] == -(n + 1) * n / 2 / n, "a mean of integers rounds toward zero");
    // 1 + n/512 is no bfloat16 for odd n, and 1 + 1/512 rounds to 1: only one rounding gets it.
    std::vector<bfloat16> half(5, bfloat16(comm.rank() == 0 ? 1.0F : 1.0F / 512));
    hierarchical_all_reduce(nodes.within, nodes.between, half);
    require(half[0].bits == bfloat16(1.0F + static_cast<float>(n - 1) / 512).bits, "bfloat16");
    std::vector<float> x(3000);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>(i % 100) + static_cast<float>(comm.rank());
    }
    hierarchical_all_reduce(nodes.within,
                            nodes.between,
                            x,
                            {.op = ReduceOp::kAvg, .between = BetweenNodes::kCompressed});
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double mean = static_cast<double>(i % 100) + (n - 1) / 2.0;
      require(std::abs(x[i] - mean) <= 99.0 * n / 254 / n + 1e-4, "compressed");
    }
    std::vector<float> empty;
    hierarchical_all_reduce(nodes.within, nodes.between, empty);
    std::vector<float> one(1, 1);
    hierarchical_all_reduce(comm, one);
    require(one[0] == static_cast<float>(n), "by hosts");
  });
}

TEST_P(Hierarchical, WhoeverRefusesTellsAllNodes) {
  run_threads(GetParam(), [](Communicator& comm) {
    Nodes nodes = make_nodes(comm);
    for (int culprit = 0; culprit < comm.size(); ++culprit) {
      std::vector<double> x(5, 1.0);
      const HierarchicalOptions right{.deadline = std::chrono::seconds(30)};
      HierarchicalOptions wrong = right;
      wrong.op = ReduceOp::kBitAnd;
      bool refused = false;
      try {
        hierarchical_all_reduce(
            nodes.within, nodes.between, x, comm.rank() == culprit ? wrong : right);
      } catch (const InvalidArgument&) {
        refused = true;
      }
      require(refused, "by rank " + std::to_string(culprit));
      std::vector<double> again(5, 1.0);
      hierarchical_all_reduce(nodes.within, nodes.between, again, right);
      require(again[4] == comm.size(), "after a refusal");
    }
  });
}
INSTANTIATE_TEST_SUITE_P(Ranks, Hierarchical, testing::Values(1, 2, 3, 4, 5, 6));

}  // namespace
}  // namespace hocket
