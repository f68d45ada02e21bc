// The table that engines of GPUs are chosen by.
#include <gtest/gtest.h>

#include <locale>
#include <typeinfo>

#include "calls/compose/providers.h"
#include "engine/cost_table.h"
#include "hocket/error.h"

namespace hocket::engine {
namespace {

Signature call(Kind kind, std::size_t count, DType dtype = DType::kUInt8) {
  return {.kind = kind, .dtype = dtype, .memory = MemoryKind::kCuda, .count = count};
}

constexpr const char* kText = R"(# what a machine measured
peer all_reduce 2 8:2 1000:4 3000:10   # three sizes
peer all_reduce 8 8:20
nccl all_reduce 2 8:5 1000:6

peer all_gather 2 100:3 200:5
peer barrier 2 0:1.5
)";

TEST(CostTable, LiesOnLinesBetweenWhatWasMeasured) {
  const CostTable table = CostTable::parse(kText);
  const auto time = [&](const char* engine, const Signature& s, int ranks) {
    return table.microseconds(engine, s, ranks).value_or(-1);
  };
  EXPECT_DOUBLE_EQ(time("peer", call(Kind::kAllReduce, 1), 2), 2);
  EXPECT_DOUBLE_EQ(time("peer", call(Kind::kAllReduce, 1000), 2), 4);
  EXPECT_DOUBLE_EQ(time("peer", call(Kind::kAllReduce, 2000), 2), 7);
  EXPECT_DOUBLE_EQ(time("peer", call(Kind::kAllReduce, 250, DType::kFloat32), 2), 4);
  EXPECT_DOUBLE_EQ(time("peer", call(Kind::kAllReduce, 6000), 2), 20);  // by its bandwidth
  EXPECT_DOUBLE_EQ(time("peer", call(Kind::kBarrier, 0), 2), 1.5);
  EXPECT_DOUBLE_EQ(time("nccl", call(Kind::kAllReduce, 1000), 2), 6);
  EXPECT_DOUBLE_EQ(time("nccl", call(Kind::kBroadcast, 1000), 2), -1);
}

TEST(CostTable, CountsSharesOfAllRanksAndTakesTheNearestRanks) {
  const CostTable table = CostTable::parse(kText);
  EXPECT_DOUBLE_EQ(*table.microseconds("peer", call(Kind::kAllGather, 75), 2), 4);
  EXPECT_DOUBLE_EQ(*table.microseconds("peer", call(Kind::kAllReduce, 8), 3), 2);
  EXPECT_DOUBLE_EQ(*table.microseconds("peer", call(Kind::kAllReduce, 8), 7), 20);
  // A v-form, whose count is that of all parts, has the cost of the regular call that it resembles.
  EXPECT_DOUBLE_EQ(*table.microseconds("peer", call(Kind::kAllGatherV, 150), 2), 4);
}

TEST(CostTable, RefusesWhatIsNoLineOfIt) {
  const auto said = [](const char* text) -> std::string {
    try {
      CostTable::parse(text);
    } catch (const InvalidArgument& error) {
      return error.what();
    }
    return "";
  };
  for (const char* line : {"peer",
                           "peer all_reduce",
                           "peer all_reduce 2",
                           "peer all_reduce 0 8:1",
                           "peer allreduce 2 8:1",
                           "peer all_reduce 2 8",
                           "peer all_reduce 2 8:",
                           "peer all_reduce 2 8:0",
                           "peer all_reduce 2 8:-1",
                           "peer all_reduce 2 8:nan",
                           "peer all_reduce 2 :3",
                           "peer all_reduce 2 8:3x",
                           "peer all_reduce 2x 8:3",
                           "peer all_reduce 2 8:3:4",
                           "peer all_reduce 2 9:1 9:2"}) {
    const std::string text = std::string("# a table\npeer barrier 2 0:1\n") + line;
    EXPECT_NE(said(text.c_str()).find("line 3 "), std::string::npos) << line << ": " << said(line);
  }
  EXPECT_EQ(said(""), "");
}

// Another package's change of the process's locale has no effect.
TEST(CostTable, ReadsNumbersWhateverTheLocale) {
  struct Broken : std::num_get<char> {
    iter_type do_get(
        iter_type, iter_type, std::ios_base&, std::ios_base::iostate&, long&) const override {
      throw std::bad_cast();
    }
  };
  const std::locale before = std::locale::global(std::locale(std::locale(), new Broken));
  EXPECT_NO_THROW(CostTable::parse(kText));
  std::locale::global(before);
}

TEST(CostTable, TheShippedOneChoosesPeerForSmallAndForTwoRanksAndNcclForLarge) {
  const CostTable table = CostTable::shipped(compose::make_providers({}));
  const auto quicker = [&](Kind kind, std::size_t bytes, int ranks) {
    const auto peer = table.microseconds("peer", call(kind, bytes), ranks);
    const auto nccl = table.microseconds("nccl", call(kind, bytes), ranks);
    return *peer < *nccl ? "peer" : "nccl";
  };
  for (const int ranks : {2, 3, 4, 8}) {
    EXPECT_STREQ(quicker(Kind::kAllReduce, 8, ranks), "peer");
    EXPECT_STREQ(quicker(Kind::kAllReduce, std::size_t{1} << 30, ranks),
                 ranks < 4 ? "peer" : "nccl");
  }
  EXPECT_NE(table.hash(), CostTable::parse(kText).hash());
}

}  // namespace
}  // namespace hocket::engine
