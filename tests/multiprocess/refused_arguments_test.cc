// Every collective, with what can be wrong with its arguments on one rank: all ranks hear of it,
// and the communicator goes on.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <ostream>
#include <string>
#include <vector>

#include "hocket/compression.h"
#include "hocket/fft.h"
#include "hocket/hocket.h"
#include "hocket/object.h"
#include "hocket/redistribute.h"
#include "hocket/sparse.h"
#include "ranks.h"

namespace hocket::multiprocess {
namespace {

constexpr int kRanks = 3;
const std::vector<std::size_t> kTwo{2, 2, 2};

// Arguments of a call. One field is wrong on one rank. A value.
struct Given {
  std::vector<float> small = std::vector<float>(2, 1.0F);
  std::vector<float> large = std::vector<float>(6, 1.0F);
  ArrayView other_dtype = ArrayView(large.data(), 6, DType::kInt32);
  ArrayView two = small;
  ArrayView six = large;
  ReduceOp op = ReduceOp::kSum;
  int root = 0;
  std::vector<std::size_t> counts = kTwo;

  // A second array of as many elements.
  std::vector<float> other_large = std::vector<float>(6, 1.0F);
  std::vector<float> other_small = std::vector<float>(2, 1.0F);
  ArrayView out_six = other_large;
  ArrayView out_two = other_small;

  std::vector<int> ranks{0, 1, 2};
  std::vector<Object> objects = std::vector<Object>(kRanks, Object(7));
  Object object = Object(7);
  std::vector<int> offsets{0, 1, 2};
  std::vector<int> columns{0, 1};
  std::size_t rows = 2;
  std::size_t matrices = kRanks;
  SparseView matrix() const { return csr_view(rows, 2, offsets, columns, small); }
  std::vector<SparseView> all_matrices() const {
    return std::vector<SparseView>(matrices, matrix());
  }
  SparseOp sparse_op = SparseOp::kSum;
  Extents shape{6, 4};
  bool turned_box = false;
  Box box(const Communicator& comm) const {
    const auto first = static_cast<std::size_t>(comm.rank()) * 2;
    return turned_box ? Box({first, 0, 0}, {first + 2, 4, 1}) : Box({first, 0}, {first + 2, 4});
  }
  std::vector<double> numbers = std::vector<double>(16, 1.0);
  std::vector<double> other_numbers = std::vector<double>(16, 1.0);
  std::size_t elements = 8;
  ArrayView spread() { return {numbers.data(), elements, DType::kComplex128}; }
  ArrayView other_spread() { return {other_numbers.data(), elements, DType::kComplex128}; }
  std::size_t symmetric_count = 6;
};

using Spoil = std::function<void(Given&)>;
const Spoil kRootBeyond = [](Given& g) { g.root = kRanks; };
const Spoil kRootBelow = [](Given& g) { g.root = -1; };
const Spoil kNoOp = [](Given& g) { g.op = static_cast<ReduceOp>(77); };
const Spoil kNoOpOfFloats = [](Given& g) { g.op = ReduceOp::kBitAnd; };
const Spoil kNowhere = [](Given& g) {
  g.two = ArrayView(nullptr, 2, DType::kFloat32);
  g.six = ArrayView(nullptr, 6, DType::kFloat32);
};
const Spoil kShortOut = [](Given& g) {
  g.out_six = g.out_six.slice(0, 5);
  g.out_two = g.out_two.slice(0, 1);
};
const Spoil kOtherOut = [](Given& g) {
  g.out_six = {g.other_large.data(), 6, DType::kInt32};
  g.out_two = {g.other_small.data(), 2, DType::kInt32};
};
const Spoil kOverlap = [](Given& g) { g.out_two = g.six.slice(1, 2); };
const Spoil kFewCounts = [](Given& g) { g.counts = {2, 2}; };
const Spoil kLargeCounts = [](Given& g) { g.counts = {2, 2, std::size_t{1} << 62}; };
const Spoil kNoCounts = [](Given& g) { g.counts = {7, 2, 2}; };

// A collective. Ranks that may succeed: a rank that has given its data, or needs none, may end
// before a refusal comes.
enum class Through { kNobody, kSome };
struct Case {
  std::string name;
  std::function<void(Communicator&, Given&)> call;
  std::vector<Spoil> spoils;
  Through through = Through::kNobody;
};

void PrintTo(const Case& its, std::ostream* out) { *out << its.name; }

std::vector<Case> in_one_array() {
  return {
      {"all_reduce",
       [](Communicator& c, Given& g) { c.all_reduce(g.six, g.out_six, {.op = g.op}); },
       {kNoOp, kNoOpOfFloats, kNowhere, kShortOut, kOtherOut}},
      {"all_reduce_async",
       [](Communicator& c, Given& g) { c.all_reduce_async(g.six, g.out_six, {.op = g.op}).wait(); },
       {kNoOp, kNoOpOfFloats, kNowhere, kShortOut, kOtherOut}},
      {"prepare_all_reduce",
       [](Communicator& c, Given& g) { c.prepare_all_reduce(g.six, g.out_six, {.op = g.op})(); },
       {kNoOp, kNoOpOfFloats, kNowhere, kShortOut, kOtherOut}},
      {"reduce",
       [](Communicator& c, Given& g) { c.reduce(g.six, {.op = g.op, .root = g.root}); },
       {kRootBeyond, kRootBelow, kNoOp, kNoOpOfFloats, kNowhere},
       Through::kSome},
      {"scan",
       [](Communicator& c, Given& g) { c.scan(g.six, g.out_six, {.op = g.op}); },
       {kNoOp, kNoOpOfFloats, kNowhere, kShortOut, kOtherOut},
       Through::kSome},
      {"exscan",
       [](Communicator& c, Given& g) { c.exscan(g.six, {.op = g.op}); },
       {kNoOp, kNoOpOfFloats, kNowhere},
       Through::kSome},
      {"reduce_scatter",
       [](Communicator& c, Given& g) { c.reduce_scatter(g.six, g.out_two, {.op = g.op}); },
       {kNoOp, kNoOpOfFloats, kNowhere, kShortOut, kOtherOut, kOverlap}},
      {"broadcast",
       [](Communicator& c, Given& g) { c.broadcast(g.six, {.root = g.root}); },
       {kRootBeyond, kRootBelow, kNowhere},
       Through::kSome},
      {"all_gather",
       [](Communicator& c, Given& g) { c.all_gather(g.two, g.out_six); },
       {kNowhere, kShortOut, kOtherOut}},
      {"gather",
       [](Communicator& c, Given& g) { c.gather(g.two, g.out_six, {.root = g.root}); },
       {kRootBeyond, kRootBelow, kNowhere},
       Through::kSome},
      {"scatter",
       [](Communicator& c, Given& g) { c.scatter(g.six, g.out_two, {.root = g.root}); },
       {kRootBeyond, kRootBelow},
       Through::kSome},
      {"all_to_all",
       [](Communicator& c, Given& g) { c.all_to_all(g.six, g.out_six); },
       {kNowhere, kShortOut, kOtherOut}},
  };
}

std::vector<Case> in_parts() {
  return {
      {"all_gather_v",
       [](Communicator& c, Given& g) { c.all_gather_v(g.two, g.out_six, {.counts = g.counts}); },
       {kNowhere, kShortOut, kOtherOut, kFewCounts, kLargeCounts, kNoCounts}},
      {"gather_v",
       [](Communicator& c, Given& g) {
         c.gather_v(g.two, g.out_six, {.counts = g.counts}, {.root = g.root});
       },
       {kRootBeyond, kRootBelow, kNowhere},
       Through::kSome},
      {"scatter_v",
       [](Communicator& c, Given& g) {
         c.scatter_v(g.six, {.counts = g.counts}, g.out_two, {.root = g.root});
       },
       {kRootBeyond, kRootBelow},
       Through::kSome},
      {"all_to_all_v",
       [](Communicator& c, Given& g) {
         c.all_to_all_v(g.six, {.counts = g.counts}, g.out_six, {.counts = kTwo});
       },
       {kNowhere, kShortOut, kOtherOut, kFewCounts, kLargeCounts, kNoCounts}},
      {"reduce_scatter_v",
       [](Communicator& c, Given& g) {
         c.reduce_scatter_v(g.six, g.out_two, g.counts, {.op = g.op});
       },
       {kNoOp, kNoOpOfFloats, kNowhere, kShortOut, kOtherOut, kFewCounts, kLargeCounts}},
  };
}

std::vector<Case> of_several_arrays() {
  return {
      {"all_reduce_coalesced",
       [](Communicator& c, Given& g) { c.all_reduce_coalesced({{g.six, g.two}}, {.op = g.op}); },
       {kNoOp, kNoOpOfFloats, kNowhere, [](Given& g) { g.two = g.six.slice(0, 2); }}},
      {"broadcast_coalesced",
       [](Communicator& c, Given& g) { c.broadcast_coalesced({{g.six, g.two}}, {.root = g.root}); },
       {kRootBeyond, kRootBelow, kNowhere},
       Through::kSome},
      {"all_gather_coalesced",
       [](Communicator& c, Given& g) { c.all_gather_coalesced({{g.two}}, {{g.out_six}}); },
       {kNowhere, kShortOut, kOtherOut}},
      {"reduce_scatter_coalesced",
       [](Communicator& c, Given& g) {
         c.reduce_scatter_coalesced({{g.six}}, {{g.out_two}}, {.op = g.op});
       },
       {kNoOp, kNoOpOfFloats, kNowhere, kShortOut, kOtherOut}},
      {"reproducible_sum",
       [](Communicator& c, Given& g) { c.reproducible_sum(g.six, g.out_two, {.op = g.op}); },
       {kNoOp, kNowhere, kOtherOut, [](Given& g) { g.op = ReduceOp::kMax; }}},
      {"compressed_all_reduce",
       [](Communicator& c, Given& g) { compressed_all_reduce(c, g.six, {.op = g.op}); },
       {kNoOp, kNowhere, [](Given& g) { g.six = g.other_dtype; }}},
      {"hierarchical_all_reduce",
       [](Communicator& c, Given& g) { hierarchical_all_reduce(c, g.six, {.op = g.op}); },
       {kNoOp, kNoOpOfFloats, kNowhere}},
      {"hierarchical_all_reduce_again",  // the groups are there, and no rank comes to `c` any more
       [](Communicator& c, Given& g) {
         Given right;
         hierarchical_all_reduce(c, right.six);
         hierarchical_all_reduce(c, g.six, {.op = g.op});
       },
       {kNoOp, kNoOpOfFloats, kNowhere}},
  };
}

std::vector<Case> of_groups_and_objects() {
  const Spoil two_objects = [](Given& g) { g.objects.resize(2); };
  return {
      {"new_group",
       [](Communicator& c, Given& g) { static_cast<void>(c.new_group(g.ranks)); },
       {[](Given& g) { g.ranks = {0, 0}; }, [](Given& g) { g.ranks = {0, kRanks}; }}},
      {"symmetric",
       [](Communicator& c, Given& g) {
         static_cast<void>(c.symmetric().empty(g.symmetric_count, DType::kFloat32));
       },
       {[](Given& g) { g.symmetric_count = ~std::size_t{0} / 2; }}},
      {"broadcast_object",
       [](Communicator& c, Given& g) { broadcast_object(c, g.object, {.root = g.root}); },
       {kRootBeyond, kRootBelow}},
      {"gather_object",
       [](Communicator& c, Given& g) { gather_object(c, g.object, {.root = g.root}); },
       {kRootBeyond, kRootBelow}},
      {"scatter_object",
       [](Communicator& c, Given& g) { scatter_object(c, g.objects, {.root = g.root}); },
       {kRootBeyond, kRootBelow, two_objects}},
  };
}

std::vector<Case> of_matrices() {
  const Spoil rows = [](Given& g) { g.rows = 5; };
  const Spoil columns = [](Given& g) { g.columns = {0, 9}; };
  const Spoil few = [](Given& g) { g.matrices = 2; };
  const auto options = [](const Given& g) {
    return SparseReduceOptions{.op = g.sparse_op, .root = g.root};
  };
  return {
      {"broadcast_sparse",
       [](Communicator& c, Given& g) { broadcast_sparse(c, g.matrix(), {.root = g.root}); },
       {kRootBeyond, kRootBelow}},
      {"all_gather_sparse",
       [](Communicator& c, Given& g) { static_cast<void>(all_gather_sparse(c, g.matrix())); },
       {rows}},
      {"gather_sparse",
       [](Communicator& c, Given& g) { gather_sparse(c, g.matrix(), {.root = g.root}); },
       {kRootBeyond, kRootBelow, rows}},
      {"scatter_sparse",
       [](Communicator& c, Given& g) { scatter_sparse(c, g.all_matrices(), {.root = g.root}); },
       {kRootBeyond, kRootBelow, rows, few}},
      {"all_to_all_sparse",
       [](Communicator& c, Given& g) { static_cast<void>(all_to_all_sparse(c, g.all_matrices())); },
       {rows, few}},
      {"reduce_sparse",
       [=](Communicator& c, Given& g) { reduce_sparse(c, g.matrix(), options(g)); },
       {kRootBeyond, kRootBelow, rows, columns}},
      {"all_reduce_sparse",
       [=](Communicator& c, Given& g) {
         static_cast<void>(all_reduce_sparse(c, g.matrix(), options(g)));
       },
       {rows, columns}},
      {"reduce_scatter_sparse",
       [=](Communicator& c, Given& g) {
         static_cast<void>(reduce_scatter_sparse(c, g.all_matrices(), options(g)));
       },
       {rows, few}},
  };
}

std::vector<Case> of_spread_arrays() {
  const Spoil box = [](Given& g) { g.turned_box = true; };
  const Spoil count = [](Given& g) { g.elements = 7; };
  const Spoil shape = [](Given& g) { g.shape = {6, 5}; };
  return {
      {"redistribute",
       [](Communicator& c, Given& g) {
         redistribute(c, g.spread(), g.box(c), g.other_spread(), g.box(c));
       },
       {box, count}},
      {"fft",
       [](Communicator& c, Given& g) {
         Fft plan(c, g.shape, g.box(c), g.box(c), {.planning = FftPlanning::kEstimated});
         plan(g.spread(), g.other_spread());
       },
       {box, count, shape}},
  };
}

class RefusalOfArguments : public testing::TestWithParam<Case> {};

// For each of its mistakes: rank 1, then the first, makes it.
TEST_P(RefusalOfArguments, ByOneRankIsHeardByAll) {
  const Case& its = GetParam();
  for (std::size_t spoil = 0; spoil < its.spoils.size(); ++spoil) {
    std::mutex mutex;
    int refused = 0;  // by the rank that made it
    run_threads(kRanks, [&](Communicator& comm) {
      comm.set_deadline(std::chrono::seconds(30));
      for (const int culprit : {1, 0}) {
        Given given;
        if (comm.rank() == culprit) its.spoils[spoil](given);
        const Outcome outcome = outcome_of([&] { its.call(comm, given); });
        const std::string where = fmt::format("{}, mistake {} of rank {}, rank {}: {} {}",
                                              its.name,
                                              spoil,
                                              culprit,
                                              comm.rank(),
                                              outcome.kind,
                                              outcome.message);
        std::vector<int> oks(kRanks);
        int own = outcome.ok() ? 1 : 0;
        comm.all_gather(scalar(own), oks);
        const bool by_culprit = oks[static_cast<std::size_t>(culprit)] == 0;
        const bool is_refused = outcome.kind == "InvalidArgument";
        const std::lock_guard lock(mutex);
        EXPECT_TRUE(is_refused || outcome.ok()) << where;
        if (comm.rank() == culprit) {
          refused += is_refused ? 1 : 0;
        } else {
          EXPECT_TRUE(is_refused == by_culprit || its.through == Through::kSome) << where;
        }
        EXPECT_TRUE(!is_refused || by_culprit) << where;
      }
    });
    EXPECT_GT(refused, 0) << its.name << ", mistake " << spoil << " is none";
  }
}

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const auto& part : {in_one_array(),
                           in_parts(),
                           of_several_arrays(),
                           of_groups_and_objects(),
                           of_matrices(),
                           of_spread_arrays()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Refusal,
                         RefusalOfArguments,
                         testing::ValuesIn(all_cases()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace hocket::multiprocess
