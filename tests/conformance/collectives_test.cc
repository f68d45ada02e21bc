// Every collective, over every engine and number of ranks, against the reference.
#include <gtest/gtest.h>

#include <stdexcept>
#include <tuple>

#include "cases.h"

namespace hocket::conformance {
namespace {

using engine::Kind;
using Parameters = std::tuple<std::size_t, int, Kind>;

class Collectives : public testing::TestWithParam<Parameters> {};

std::string name(const testing::TestParamInfo<Parameters>& info) {
  const auto [engine, ranks, kind] = info.param;
  return engine_cases()[engine].name + "_" + std::to_string(ranks) + "_" +
         std::string(name_of(kind));
}

TEST_P(Collectives, MatchTheReference) {
  const auto [index, ranks, kind] = GetParam();
  const EngineCase& engine_case = engine_cases()[index];
  if (!engine_case.carries.has(kind)) GTEST_SKIP() << "it does not carry that";
  const std::vector<Case> cases = sweep(kind, ranks);
  const std::string failure = engine_case.run(ranks, [&](const EngineRank& self) {
    std::uint64_t sequence = 0;
    for (const Case& c : cases) run_case(self, c, ++sequence);
  });
  EXPECT_EQ(failure, "");
}

INSTANTIATE_TEST_SUITE_P(Every,
                         Collectives,
                         testing::Combine(testing::Range<std::size_t>(0, engine_cases().size()),
                                          testing::Values(1, 2, 3, 4, 5, 8),
                                          testing::ValuesIn(kKinds)),
                         name);

// NaN and infinities, in every place that a rank may bring them from.
class Specials : public testing::TestWithParam<Parameters> {};

TEST_P(Specials, GoWhereIeeeSays) {
  const auto [index, ranks, kind] = GetParam();
  if (!engine_cases()[index].carries.has(kind)) GTEST_SKIP() << "it does not carry that";
  std::vector<Case> cases;
  for (const DType dtype : {DType::kFloat16,
                            DType::kBFloat16,
                            DType::kFloat32,
                            DType::kFloat64,
                            DType::kFloat8E4M3,
                            DType::kFloat8E5M2,
                            DType::kComplex64,
                            DType::kComplex128}) {
    const bool complex = dtype == DType::kComplex64 || dtype == DType::kComplex128;
    for (const ReduceOp op :
         {ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kProduct, ReduceOp::kMin, ReduceOp::kMax}) {
      // Complex numbers have no order, and what infinities come to in their products depends on it.
      if (complex && op != ReduceOp::kSum && op != ReduceOp::kAvg) continue;
      for (const std::size_t count : {3, 9'000}) {
        cases.push_back({.kind = kind,
                         .dtype = dtype,
                         .op = op,
                         .count = count,
                         .root = ranks - 1,
                         .in_place = cases.size() % 2 == 1,
                         .data = Data::kSpecial,
                         .seed = mix(cases.size())});
      }
    }
  }
  const std::string failure = engine_cases()[index].run(ranks, [&](const EngineRank& self) {
    std::uint64_t sequence = 0;
    for (const Case& c : cases) run_case(self, c, ++sequence);
  });
  EXPECT_EQ(failure, "");
}

INSTANTIATE_TEST_SUITE_P(Every,
                         Specials,
                         testing::Combine(testing::Range<std::size_t>(0, engine_cases().size()),
                                          testing::Values(1, 2, 3, 5),
                                          testing::Values(Kind::kReduce,
                                                          Kind::kAllReduce,
                                                          Kind::kScan,
                                                          Kind::kExscan,
                                                          Kind::kReduceScatter,
                                                          Kind::kReduceScatterV)),
                         name);

class Barriers : public testing::TestWithParam<std::tuple<std::size_t, int>> {};

TEST_P(Barriers, NobodyLeavesBeforeAllHaveCome) {
  const auto [index, ranks] = GetParam();
  const std::string failure = engine_cases()[index].run(ranks, [](const EngineRank& self) {
    for (std::uint64_t round = 1; round <= 300; ++round) {
      // Another rank is late each time.
      if (round % static_cast<std::uint64_t>(self.size) == static_cast<std::uint64_t>(self.rank)) {
        Wait wait(self, "being late");
        for (int i = 0; i < 50; ++i) wait.pause();
      }
      // Relaxed: that the barrier orders memory is part of what is tested.
      self.board->cells[static_cast<std::size_t>(self.rank)].store(round,
                                                                   std::memory_order_relaxed);
      const Buffers none({.kind = Kind::kBarrier}, self.rank, self.size, round);
      engine::Task task = self.engine->start(none.call());
      drive(self, task, "barrier " + std::to_string(round));
      for (int r = 0; r < self.size; ++r) {
        const auto seen =
            self.board->cells[static_cast<std::size_t>(r)].load(std::memory_order_relaxed);
        if (seen < round) {
          throw std::runtime_error("left barrier " + std::to_string(round) + " when rank " +
                                   std::to_string(r) + " was at " + std::to_string(seen));
        }
      }
    }
  });
  EXPECT_EQ(failure, "");
}

INSTANTIATE_TEST_SUITE_P(Every,
                         Barriers,
                         testing::Combine(testing::Range<std::size_t>(0, engine_cases().size()),
                                          testing::Values(1, 2, 3, 4, 5, 8)),
                         [](const auto& parameters) {
                           return engine_cases()[std::get<0>(parameters.param)].name + "_" +
                                  std::to_string(std::get<1>(parameters.param));
                         });

}  // namespace
}  // namespace hocket::conformance
