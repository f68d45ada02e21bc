// The parts of `hocket bench` that can be wrong without being slow: sizes, checks, messages,
// ratios.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <numbers>
#include <string>
#include <tuple>
#include <vector>

#include "interfaces/cli/bench/case.h"
#include "interfaces/cli/bench/data.h"
#include "interfaces/cli/bench/libraries.h"
#include "interfaces/cli/bench/measure.h"
#include "interfaces/cli/bench/numeric.h"
#include "interfaces/cli/bench/plot.h"
#include "interfaces/cli/bench/report.h"
#include "interfaces/cli/bench/wire.h"

namespace hocket::cli::bench {
namespace {

constexpr std::size_t kElements = 13;

// The arrays of every rank of one case.
class Ranks {
 public:
  Ranks(const Case& subject, int ranks) : subject_(subject), ranks_(ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      const Shape shape = shape_of(subject, rank, ranks);
      in_.emplace_back(shape.in);
      out_.emplace_back(shape.out);
    }
  }

  void fill_all(std::uint32_t seed) {
    for (int rank = 0; rank < ranks_; ++rank) fill(subject_, {rank, ranks_}, seed, arrays(rank));
  }
  std::string check_all(std::uint32_t seed) {
    std::string wrong;
    for (int rank = 0; rank < ranks_; ++rank) {
      wrong += check(subject_, {rank, ranks_}, seed, arrays(rank));
    }
    return wrong;
  }

  // The inputs of the ranks, before anything is overwritten.
  std::vector<std::vector<float>> brought() const {
    std::vector<std::vector<float>> all;
    const bool from_out = subject_.in_place || subject_.collective == Collective::kBroadcast;
    for (int rank = 0; rank < ranks_; ++rank) {
      std::vector<float> one = from_out ? out_[rank] : in_[rank];
      const bool own_part =
          subject_.in_place && (subject_.collective == Collective::kAllGather ||
                                (subject_.collective == Collective::kGather && rank == kRoot));
      if (own_part) {
        const auto first = one.begin() + static_cast<std::ptrdiff_t>(kElements) * rank;
        one = std::vector<float>(first, first + kElements);
      }
      all.push_back(std::move(one));
    }
    return all;
  }

  std::vector<float>& out(int rank) { return out_[static_cast<std::size_t>(rank)]; }

 private:
  Arrays arrays(int rank) {
    const auto at = static_cast<std::size_t>(rank);
    return {in_[at].empty() ? nullptr : in_[at].data(), out_[at].data()};
  }

  Case subject_;
  int ranks_;
  std::vector<std::vector<float>> in_, out_;
};

// The collectives, done in the plainest way.
void perform(const Case& subject, int ranks, Ranks& all) {
  const auto in = all.brought();
  const auto n = static_cast<std::size_t>(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<float>& out = all.out(rank);
    const auto sum_upto = [&](std::size_t end, std::size_t index) {
      float sum = 0;
      for (std::size_t from = 0; from < end; ++from) sum += in[from][index];
      return sum;
    };
    const auto sum_at = [&](std::size_t index) { return sum_upto(n, index); };
    for (std::size_t i = 0; i < kElements; ++i) {
      const std::size_t mine = static_cast<std::size_t>(rank) * kElements + i;
      switch (subject.collective) {
        case Collective::kAllReduce:
          out[i] = sum_at(i);
          break;
        case Collective::kReduce:
          if (rank == kRoot) out[i] = sum_at(i);
          break;
        case Collective::kScan:
          out[i] = sum_upto(static_cast<std::size_t>(rank) + 1, i);
          break;
        case Collective::kExscan:
          if (rank > 0) out[i] = sum_upto(static_cast<std::size_t>(rank), i);
          break;
        case Collective::kReduceScatter:
          out[i] = sum_at(mine);
          break;
        case Collective::kBroadcast:
          out[i] = in[kRoot][i];
          break;
        case Collective::kScatter:
          out[i] = in[kRoot][mine];
          break;
        case Collective::kAllGather:
        case Collective::kGather:
          if (subject.collective == Collective::kGather && rank != kRoot) break;
          for (std::size_t from = 0; from < n; ++from) out[from * kElements + i] = in[from][i];
          break;
        case Collective::kAllToAll:
          for (std::size_t from = 0; from < n; ++from) out[from * kElements + i] = in[from][mine];
          break;
        case Collective::kSend:
          if (rank < 2) out[i] = in[1 - static_cast<std::size_t>(rank)][i];
          break;
        case Collective::kSendRecv:
          out[i] = in[(static_cast<std::size_t>(rank) + n - 1) % n][i];
          break;
        case Collective::kSendWindow:
        case Collective::kISendWindow:
          if (rank == 1) out[i] = in[0][i];
          break;
        case Collective::kFft:
        case Collective::kFftTransposed:
        case Collective::kMatmul:
        case Collective::kBarrier:
          break;
      }
    }
  }
}

using Setting = std::tuple<Collective, bool, int>;

// All valid combinations of collective, in place or not, and number of ranks.
std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const Collective collective : kCollectives) {
    for (const bool in_place : {false, true}) {
      for (const int ranks : {1, 2, 3, 5}) {
        if (in_place && !in_place_is_a_choice(collective)) continue;
        if (is_of_two(collective) && ranks < 2) continue;
        if (collective == Collective::kExscan && ranks < 2) continue;  // no rank has a result
        all.emplace_back(collective, in_place, ranks);
      }
    }
  }
  return all;
}

class BenchData : public testing::TestWithParam<Setting> {};

TEST_P(BenchData, RightResultsPassAndOthersAreFound) {
  const auto [collective, in_place, ranks] = GetParam();
  const Case subject{.collective = collective, .elements = kElements, .in_place = in_place};
  Ranks all(subject, ranks);
  all.fill_all(1);
  perform(subject, ranks, all);
  EXPECT_EQ(all.check_all(1), "");
  if (collective == Collective::kBarrier) return;
  EXPECT_NE(all.check_all(2), "") << "results of an earlier call must not pass";

  const bool is_last_s = collective == Collective::kExscan;
  std::vector<float>& result = all.out(is_last_s ? ranks - 1 : (is_window(collective) ? 1 : kRoot));
  std::swap(result[3], result[4]);
  EXPECT_NE(all.check_all(1), "") << "elements in the wrong order must not pass";

  const bool keeps_input = in_place && collective == Collective::kScatter && ranks == 1;
  const bool is_alone = ranks == 1 && (in_place || collective == Collective::kBroadcast);
  all.fill_all(1);
  if (!keeps_input && !is_alone) {
    EXPECT_NE(all.check_all(1), "") << "a call that does nothing must not pass";
  }
}

INSTANTIATE_TEST_SUITE_P(All, BenchData, testing::ValuesIn(settings()), [](const auto& one) {
  return std::string(name_of(std::get<0>(one.param))) +
         (std::get<1>(one.param) ? "_in_place_" : "_apart_") +
         std::to_string(std::get<2>(one.param));
});

class BenchTypes : public testing::TestWithParam<int> {};

TEST_P(BenchTypes, EveryDTypeAndOpHasResultsThatOneRankAgreesWith) {
  const auto dtype = static_cast<DType>(GetParam());
  for (int op = 0; op < kReduceOpCount; ++op) {
    if (!is_defined(static_cast<ReduceOp>(op), dtype)) continue;
    const Case subject{.elements = 100, .dtype = dtype, .op = static_cast<ReduceOp>(op)};
    // Room for the widest type.
    std::vector<std::byte> in(1600), out(1600);
    fill(subject, {0, 1}, 7, {in.data(), out.data()});
    EXPECT_NE(check(subject, {0, 1}, 7, {in.data(), out.data()}), "");
    std::memcpy(out.data(), in.data(), 100 * size_of(dtype));
    EXPECT_EQ(check(subject, {0, 1}, 7, {in.data(), out.data()}), "");
  }
}

INSTANTIATE_TEST_SUITE_P(All, BenchTypes, testing::Range(0, kDTypeCount));

TEST(BenchCase, SizesAreThoseOfTheLargerBuffer) {
  for (const Collective collective : kCollectives) {
    for (const int ranks : {1, 2, 3, 8}) {
      for (const std::size_t bytes : {1u, 8u, 100u, 4096u}) {
        Case subject{.collective = collective};
        subject.elements = elements_for(collective, bytes, DType::kFloat32, ranks);
        std::size_t largest = 0;
        for (int rank = 0; rank < ranks; ++rank) {
          const Shape shape = shape_of(subject, rank, ranks);
          largest = std::max({largest, 4 * shape.in, 4 * shape.out});
        }
        EXPECT_EQ(bytes_of(subject, ranks), largest) << name_of(collective);
        if (collective == Collective::kBarrier) continue;
        EXPECT_GT(largest, 0u);
        if (bytes >= 4u * static_cast<unsigned>(ranks)) {
          EXPECT_LE(largest, bytes);
        }
      }
    }
  }
}

TEST(BenchCase, BusBandwidthFollowsTheConvention) {
  EXPECT_DOUBLE_EQ(bus_factor(Collective::kAllReduce, 2), 1.0);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::kAllReduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::kAllGather, 4), 0.75);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::kReduceScatter, 8), 0.875);
  EXPECT_DOUBLE_EQ(bus_factor(Collective::kBroadcast, 8), 1.0);
}

TEST(BenchWire, MessagesSurviveTheJourney) {
  const Request request{.verb = Verb::kRun,
                        .slot = 3,
                        .subject = {.collective = Collective::kAllToAll,
                                    .elements = 12345678901,
                                    .dtype = DType::kBFloat16,
                                    .op = ReduceOp::kBitXor,
                                    .memory = Memory::kSymmetric,
                                    .in_place = true},
                        .seed = 4000000000,
                        .warmup = 5,
                        .calls = 6000000000,
                        .dirty = true};
  const Request back = parse_request(to_line(request));
  EXPECT_EQ(back.verb, request.verb);
  EXPECT_EQ(back.slot, request.slot);
  EXPECT_EQ(back.subject, request.subject);
  EXPECT_EQ(back.seed, request.seed);
  EXPECT_EQ(back.warmup, request.warmup);
  EXPECT_EQ(back.calls, request.calls);
  EXPECT_EQ(back.dirty, request.dirty);

  const Answer answer = parse_answer(to_line(Answer{Outcome::kFailed, 17, "two\nlines"}));
  EXPECT_EQ(answer.outcome, Outcome::kFailed);
  EXPECT_EQ(answer.nanoseconds, 17);
  EXPECT_EQ(answer.text, "two lines");

  const Hello hello = parse_hello(to_line(Hello{"ab", "mpich", 2, 4, "0-1", "MPICH 4.0.2"}));
  EXPECT_EQ(hello.token, "ab");
  EXPECT_EQ(hello.rank, 2);
  EXPECT_EQ(hello.version, "MPICH 4.0.2");
}

TEST(BenchWire, OtherLinesAreRefused) {
  for (const char* line : {"", "9 0 0 1 0 0 0 0 0 0 0", "0 0 99 1 0 0 0 0 0 0 0", "words", "0 0"}) {
    EXPECT_THROW(parse_request(line), std::runtime_error) << line;
    EXPECT_THROW(parse_hello(line), std::runtime_error) << line;
  }
  EXPECT_THROW(parse_answer("4 0"), std::runtime_error);
  EXPECT_THROW(parse_answer("ok"), std::runtime_error);
}

TEST(BenchFigures, MediansQuartilesAndRatios) {
  Row row{.subject = {.elements = 1000}, .ranks = 4, .bytes = 4000, .times_us = {4, 1, 2, 8, 3}};
  const Row peer{.times_us = {8, 2, 4, 16, 12}};
  EXPECT_DOUBLE_EQ(row.median_us(), 3);
  EXPECT_DOUBLE_EQ(row.min_us(), 1);
  EXPECT_DOUBLE_EQ(row.max_us(), 8);
  EXPECT_DOUBLE_EQ(row.lower_quartile_us(), 2);
  EXPECT_DOUBLE_EQ(quantile_of({1, 2}, 0.5), 1.5);
  EXPECT_DOUBLE_EQ(row.algorithm_gbps(), 4000 / 3.0 / 1000);
  EXPECT_DOUBLE_EQ(row.bus_gbps(), row.algorithm_gbps() * 1.5);
  const Ratio ratio = ratio_of(row, peer);
  EXPECT_DOUBLE_EQ(ratio.median, 0.5);
  EXPECT_DOUBLE_EQ(ratio.low, 0.5);
  EXPECT_DOUBLE_EQ(ratio.high, 0.5);
}

// Cases of times measured side by side: the ratio that is shown, and its colour.
TEST(BenchFigures, ARatioIsOfPairsAndOnlyWhatIsBelowOneIsGreen) {
  using Side = Ratio::Side;
  struct Pairs {
    const char* what;
    std::vector<double> own, other;
    double median;
    Side side;
  };
  const Pairs table[] = {
      {"half throughout", {1, 2, 3}, {2, 4, 6}, 0.5, Side::kBelow},
      // The medians are 11 and 10: half of the batches met a slower machine, in both libraries.
      {"two medians would say 1.10", {5, 11, 55, 56, 5}, {10, 20, 100, 100, 9}, 0.55, Side::kBelow},
      {"the middle half reaches above", {8, 9, 12}, {10, 10, 10}, 0.9, Side::kEven},
      {"shown as 1.00", {999, 999, 999}, {1000, 1000, 1000}, 0.999, Side::kEven},
      {"shown as 0.99", {99, 99, 99}, {100, 100, 100}, 0.99, Side::kBelow},
      {"alike", {7, 7}, {7, 7}, 1, Side::kEven},
      {"shown as 1.00, from above", {1001, 1001}, {1000, 1000}, 1.001, Side::kEven},
      {"twice throughout", {4, 8, 12}, {2, 4, 6}, 2, Side::kAbove},
      {"one batch is far off", {1, 1, 900}, {2, 2, 2}, 0.5, Side::kEven},
      {"one has fewer batches", {1, 1, 1, 9}, {2, 2, 2}, 0.5, Side::kBelow},
  };
  for (const Pairs& pairs : table) {
    const Ratio ratio = ratio_of(Row{.times_us = pairs.own}, Row{.times_us = pairs.other});
    EXPECT_DOUBLE_EQ(ratio.median, pairs.median) << pairs.what;
    EXPECT_EQ(ratio.side(), pairs.side) << pairs.what;
  }
}

TEST(BenchPlacement, RanksAreBoundToCoresIfThereAreEnough) {
  struct Line {
    int ranks, cores, processors;
    bool may_bind;
    Unit unit;
    bool is_crowded;
  };
  const Line table[] = {{2, 2, 2, true, Unit::kCore, false},
                        {16, 16, 32, true, Unit::kCore, false},
                        {17, 16, 32, true, Unit::kThread, false},
                        {32, 16, 32, true, Unit::kThread, false},
                        {33, 16, 32, true, Unit::kNone, true},
                        {16, 16, 32, false, Unit::kNone, false},
                        {4, 2, 2, false, Unit::kNone, true}};
  for (const Line& row : table) {
    const Placement placement{.ranks = row.ranks,
                              .cores = row.cores,
                              .processors = row.processors,
                              .may_bind = row.may_bind};
    EXPECT_EQ(placement.unit(), row.unit) << row.ranks;
    EXPECT_EQ(placement.is_crowded(), row.is_crowded) << row.ranks;
  }
}

// A point as `hocket bench --tune` measures and writes it: the engines alone, in both kinds of
// memory.
Point engines_point(Collective collective, std::size_t bytes) {
  const auto row = [&](const char* library, Memory memory, double us) {
    Row made{.library = library, .ranks = 2, .bytes = bytes, .times_us = {us}, .wrong = {}};
    made.subject.collective = collective;
    made.subject.memory = memory;
    return made;
  };
  return {row("peer", Memory::kCuda, 3),
          row("peer", Memory::kSymmetric, 2),
          row("nccl", Memory::kCuda, 5)};
}

TEST(BenchReport, ARowsCounterpartIsOfItsMemoryWhereThereIsOne) {
  const Point point = engines_point(Collective::kAllReduce, 8);
  EXPECT_EQ(counterpart(point, point[2], "peer"), &point[0]);
  EXPECT_EQ(counterpart(point, point[1], "peer"), &point[1]);
  EXPECT_EQ(counterpart(point, point[1], "nccl"), &point[2]);
  EXPECT_EQ(counterpart(point, point[1], "gloo"), nullptr);
}

TEST(BenchReport, ATableOfCostsSaysWhichMemory) {
  Findings findings;
  findings.points = {engines_point(Collective::kAllReduce, 4096),
                     engines_point(Collective::kAllReduce, 8)};
  findings.points[0][2].wrong = "rank 0: an element is wrong";
  findings.points.push_back(engines_point(Collective::kBroadcast, 8));
  for (Row& row : findings.points.back()) row.subject.in_place = true;  // there is no other
  const std::string table = to_cost_table(findings);
  EXPECT_NE(table.find("\npeer broadcast 2 8:3\n"), std::string::npos) << table;
  EXPECT_NE(table.find("\npeer all_reduce 2 8:3 4096:3\n"), std::string::npos) << table;
  EXPECT_NE(table.find("\npeer.symmetric all_reduce 2 8:2 4096:2\n"), std::string::npos) << table;
  EXPECT_NE(table.find("\nnccl all_reduce 2 8:5\n"), std::string::npos) << table;
}

TEST(BenchReport, NumbersReadWell) {
  EXPECT_EQ(size_text(8), "8 B");
  EXPECT_EQ(size_text(65536), "64 KiB");
  EXPECT_EQ(size_text(3 << 19), "1.5 MiB");
  EXPECT_EQ(three_digits(0.1351), "0.135");
  EXPECT_EQ(three_digits(9.996), "10.0");
  EXPECT_EQ(three_digits(4893.2), "4893");
}

TEST(BenchPlot, TextIsEscapedAndOneMarkIsEnough) {
  EXPECT_EQ(escaped("<a> & \"b\"\x01"), "&lt;a&gt; &amp; &quot;b&quot; ");
  Plot plot{.title = "t", .unit = "µs", .curves = {{"lib0", {{8, 1, 1, 1, "hint"}}}}};
  const std::string svg = to_svg(plot);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
  EXPECT_NE(svg.find("hint"), std::string::npos);
  EXPECT_EQ(to_svg(Plot{}).find("nan"), std::string::npos);
}

TEST(BenchPlot, PanelsShareTheirAxes) {
  const auto plot = [](const char* title, double bytes, double us) {
    return Plot{.title = title, .unit = "µs", .curves = {{"lib0", {{bytes, us, us, us, "hint"}}}}};
  };
  const std::string svg =
      to_svg("t", {plot("2 ranks", 8, 1), plot("4 ranks", 1024, 1000), Plot{.title = "8 ranks"}});
  const auto count = [&](const std::string& text) {
    int found = 0;
    for (auto at = svg.find(text); at != std::string::npos; at = svg.find(text, at + 1)) ++found;
    return found;
  };
  for (const char* title : {">2 ranks<", ">4 ranks<", ">8 ranks<"}) EXPECT_EQ(count(title), 1);
  EXPECT_EQ(count("<svg"), 1);
  EXPECT_EQ(count(">1 ms<"), 1) << "the values are named once, on the left";
  EXPECT_EQ(count(">8 B<"), 3) << "the sizes of all are below each";
  EXPECT_EQ(count("nan"), 0);
  EXPECT_EQ(to_svg("t", std::vector<Plot>{}), "");
}

// --- Transforms and products ---------------------------------------------------------------------

// All ranks' slabs, one after the other, transformed by sums written out.
std::vector<std::complex<double>> transformed(const std::vector<std::complex<double>>& x,
                                              std::size_t n) {
  std::vector<std::complex<double>> y(x.size());
  const auto at = [n](std::size_t i, std::size_t j, std::size_t k) { return (i * n + j) * n + k; };
  for (std::size_t to = 0; to < x.size(); ++to) {
    const std::size_t a = to / (n * n), b = to / n % n, c = to % n;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        for (std::size_t k = 0; k < n; ++k) {
          const double turn =
              static_cast<double>((a * i + b * j + c * k) % n) / static_cast<double>(n);
          y[to] += x[at(i, j, k)] * std::polar(1.0, -2 * std::numbers::pi * turn);
        }
      }
    }
  }
  return y;
}

TEST(BenchNumeric, ATransformIsTakenWhereItIsRightAlone) {
  constexpr std::size_t n = 6;
  constexpr int kRanks = 3;
  for (const Collective collective : {Collective::kFft, Collective::kFftTransposed}) {
    const Case subject{.collective = collective, .elements = n, .dtype = DType::kComplex128};
    const std::size_t share = numeric_shape(subject, {0, kRanks}).in;
    std::vector<std::complex<double>> x(share * kRanks), out(share);
    for (int rank = 0; rank < kRanks; ++rank) {
      fill_numeric(subject,
                   {rank, kRanks},
                   9,
                   {x.data() + share * static_cast<std::size_t>(rank), out.data()});
    }
    const auto y = transformed(x, n);
    bool is_told_apart = false;  // from the result of another seed
    for (int rank = 0; rank < kRanks; ++rank) {
      const auto first = static_cast<std::size_t>(rank) * n / kRanks;
      std::vector<std::complex<double>> part;
      for (std::size_t to = 0; to < y.size(); ++to) {
        const std::size_t cut = collective == Collective::kFft ? to / (n * n) : to / n % n;
        if (cut >= first && cut < first + n / kRanks) part.push_back(y[to]);
      }
      ASSERT_EQ(part.size(), share);
      EXPECT_EQ(check_numeric(subject, {rank, kRanks}, 9, {nullptr, part.data()}), "");
      is_told_apart |= !check_numeric(subject, {rank, kRanks}, 10, {nullptr, part.data()}).empty();
      for (std::size_t i = 0; i < part.size(); i += 7) {
        part[i] += 0.01;
        EXPECT_NE(check_numeric(subject, {rank, kRanks}, 9, {nullptr, part.data()}), "") << i;
        part[i] -= 0.01;
      }
    }
    EXPECT_TRUE(is_told_apart);
  }
}

TEST(BenchNumeric, PartsOfAMatrixTileIt) {
  for (const std::size_t n : {1, 63, 64, 65, 200, 517}) {
    for (const int ranks : {1, 2, 3, 4, 6}) {
      std::vector<int> seen(n * n);
      for (int rank = 0; rank < ranks; ++rank) {
        const MatrixPart part(n, {rank, ranks});
        EXPECT_EQ(part.grid[0] * part.grid[1], static_cast<std::size_t>(ranks));
        for (std::size_t j = 0; j < part.width; ++j) {
          for (std::size_t i = 0; i < part.height; ++i)
            ++seen.at(part.whole(0, i) * n + part.whole(1, j));
        }
      }
      EXPECT_EQ(std::count(seen.begin(), seen.end(), 1), std::ptrdiff_t(n * n))
          << n << ", " << ranks;
    }
  }
}

TEST(BenchNumeric, AProductIsTakenWhereItIsRightAlone) {
  constexpr std::size_t n = 30;
  const Case subject{.collective = Collective::kMatmul, .elements = n, .dtype = DType::kFloat64};
  std::vector<double> in(2 * n * n), out(n * n);
  fill_numeric(subject, {0, 1}, 4, {in.data(), out.data()});
  EXPECT_NE(check_numeric(subject, {0, 1}, 4, {nullptr, out.data()}), "")
      << "nothing was multiplied";
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < n; ++k) sum += in[i + k * n] * in[n * n + k + j * n];
      out[i + j * n] = sum;
    }
  }
  EXPECT_EQ(check_numeric(subject, {0, 1}, 4, {nullptr, out.data()}), "");
  EXPECT_NE(check_numeric(subject, {0, 1}, 5, {nullptr, out.data()}), "") << "of another seed";
}

}  // namespace
}  // namespace hocket::cli::bench
