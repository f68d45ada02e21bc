// A rank runs out of memory, at each allocation in each kind of call. The others hear of it at
// once, and the report is true.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "collectives.h"
#include "failing_memory.h"
#include "hocket/compression.h"
#include "hocket/object.h"
#include "hocket/sparse.h"
#include "ranks.h"

namespace hocket::multiprocess {
namespace {

using std::chrono::seconds;

constexpr int kRanks = 3;
constexpr std::size_t kSmall = 4, kLarge = 40'000;  // elements; the latter are not packed
constexpr std::size_t kLong = std::size_t{2} << 20;

// A square matrix with one value a row.
struct Diagonal {
  std::vector<double> values{1, 2, 3};
  std::vector<std::int32_t> offsets{0, 1, 2, 3}, columns{0, 1, 2};
  SparseView view() const { return csr_view(3, 3, offsets, columns, values); }
  std::vector<SparseView> one_a_rank() const { return std::vector<SparseView>(kRanks, view()); }
};

Object object_of(int rank) {
  return Object::list({"a text that is too long to lie in the string itself",
                       Object::bytes(std::vector<std::byte>(500, std::byte(rank)))});
}

// Returns an array of this length, the same one for all calls.
std::vector<float>& kept_array(std::size_t elements) {
  static std::map<std::size_t, std::vector<float>> arrays;
  std::vector<float>& array = arrays[elements];
  array.resize(elements);
  return array;
}

// Objects for a call, made before memory fails. A resource.
struct Given {
  Arrays small{kRanks, kSmall}, large{kRanks, kLarge};
  std::vector<std::int32_t> ints = std::vector<std::int32_t>(5, 1);
  std::vector<std::size_t> counts = std::vector<std::size_t>(kRanks, kSmall);
  std::vector<ArrayView> list{small.in_share(), large.in_share(), ints, large.out_share()};
  std::vector<ConstArrayView> shares{small.in_share(), large.in_share()};
  std::vector<ConstArrayView> wholes{small.in, large.in};
  std::vector<ArrayView> out_shares{small.out_share(), large.out_share()};
  std::vector<ArrayView> out_wholes{small.out, large.out};
  Object object = object_of(3);
  std::vector<Object> objects = std::vector<Object>(kRanks, object_of(1));
  Diagonal matrix;
  std::vector<SparseView> matrices = matrix.one_a_rank();
  std::vector<int> ranks{2, 0};
  // The kernel copies these for so long that the owner, if it fails, has to wait for a copy.
  std::vector<float>& long_share = kept_array(kLong);
  std::vector<float>& long_whole = kept_array(kRanks * kLong);
};

struct Case {
  const char* name;
  void (*run)(Communicator&, Given&);
};

const std::vector<Case>& cases() {
  using C = Communicator;
  using G = Given;
  static const std::vector<Case> all{
      {"all_reduce_async",
       [](C& c, G& g) { c.all_reduce_async(g.small.in_share(), g.small.out_share()).wait(); }},
      {"prepared",
       [](C& c, G& g) {
         Prepared call = c.prepare_all_reduce(g.large.in_share(), g.large.out_share());
         call();
         call.start().wait();
       }},
      {"gather_of_long_arrays",
       [](C& c, G& g) { c.gather(g.long_share, g.long_whole, {.root = 1}); }},
      {"scatter_of_long_arrays",
       [](C& c, G& g) { c.scatter(g.long_whole, g.long_share, {.root = 1}); }},
      {"reduce_of_long_arrays",
       [](C& c, G& g) { c.reduce(g.long_whole, g.long_whole, {.root = 1}); }},
      {"all_gather_v", [](C& c, G& g) { c.all_gather_v(g.small.in_share(), g.small.out, {}); }},
      {"gather_v",
       [](C& c, G& g) { c.gather_v(g.small.in_share(), g.small.out, {}, {.root = 1}); }},
      {"reduce_scatter_v",
       [](C& c, G& g) { c.reduce_scatter_v(g.small.in, g.small.out_share(), {}); }},
      {"all_to_all_v_async",
       [](C& c, G& g) {
         c.all_to_all_v_async(g.small.in, {.counts = g.counts}, g.small.out, {}).wait();
       }},
      {"scatter_v",
       [](C& c, G& g) {
         c.scatter_v(g.small.in, {.counts = g.counts}, g.small.out_share(), {.root = 0});
       }},
      {"all_reduce_coalesced", [](C& c, G& g) { c.all_reduce_coalesced(g.list); }},
      {"broadcast_coalesced", [](C& c, G& g) { c.broadcast_coalesced(g.list, {.root = 2}); }},
      {"all_gather_coalesced", [](C& c, G& g) { c.all_gather_coalesced(g.shares, g.out_wholes); }},
      {"reduce_scatter_coalesced",
       [](C& c, G& g) { c.reduce_scatter_coalesced(g.wholes, g.out_shares); }},
      {"reproducible_sum_of_fewer_elements_than_ranks",
       [](C& c, G& g) {
         const auto shards = std::span(g.small.in).first(c.rank() == 1 ? 0 : 2);
         c.reproducible_sum(shards, std::span(g.small.out).first(1));
       }},
      {"broadcast_object", [](C& c, G& g) { broadcast_object(c, g.object, {.root = 1}); }},
      {"gather_object", [](C& c, G& g) { gather_object(c, g.object, {.root = 1}); }},
      {"all_gather_object", [](C& c, G& g) { static_cast<void>(all_gather_object(c, g.object)); }},
      {"scatter_object", [](C& c, G& g) { scatter_object(c, g.objects, {.root = 0}); }},
      {"broadcast_sparse", [](C& c, G& g) { broadcast_sparse(c, g.matrix.view(), {.root = 1}); }},
      {"gather_sparse", [](C& c, G& g) { gather_sparse(c, g.matrix.view(), {.root = 0}); }},
      {"all_gather_sparse",
       [](C& c, G& g) { static_cast<void>(all_gather_sparse(c, g.matrix.view())); }},
      {"scatter_sparse", [](C& c, G& g) { scatter_sparse(c, g.matrices, {.root = 1}); }},
      {"all_to_all_sparse",
       [](C& c, G& g) { static_cast<void>(all_to_all_sparse(c, g.matrices)); }},
      {"reduce_sparse", [](C& c, G& g) { reduce_sparse(c, g.matrix.view(), {.root = 1}); }},
      {"all_reduce_sparse",
       [](C& c, G& g) { static_cast<void>(all_reduce_sparse(c, g.matrix.view())); }},
      {"reduce_scatter_sparse",
       [](C& c, G& g) { static_cast<void>(reduce_scatter_sparse(c, g.matrices)); }},
      {"compressed_all_reduce", [](C& c, G& g) { compressed_all_reduce(c, g.small.in_share()); }},
      {"hierarchical_all_reduce",
       [](C& c, G& g) {
         Communicator fresh = c.duplicate();  // whose groups by host are yet to be made
         hierarchical_all_reduce(fresh, g.small.in_share(), {.between = BetweenNodes::kCompressed});
       }},
      {"symmetric", [](C& c, G&) { static_cast<void>(c.symmetric().empty<float>(100)); }},
      {"new_group", [](C& c, G& g) { static_cast<void>(c.new_group(g.ranks)); }},
      {"split", [](C& c, G&) { static_cast<void>(c.split({.color = c.rank() % 2})); }},
      {"duplicate", [](C& c, G&) { static_cast<void>(c.duplicate()); }},
      {"intra_node",
       [](C& c, G&) {
         Communicator fresh = c.duplicate();
         fresh.intra_node();
         fresh.inter_node();
       }},
  };
  return all;
}

// One of these, or "all_reduce/small" for one of collectives.h.
std::function<void()> call_of(const std::string& name, Communicator& comm, Given& given) {
  for (const Case& each : cases()) {
    if (each.name == name) return [&comm, &given, run = each.run] { run(comm, given); };
  }
  const auto slash = name.find('/');
  const auto run = collective(name.substr(0, slash)).run;
  Arrays& arrays = name.substr(slash + 1) == "small" ? given.small : given.large;
  return [&comm, &arrays, run] { run(comm, arrays, 1, {}); };
}

// The ranks' report after each call, over a communicator where nothing fails.
struct Report {
  int failed = 0;  // an allocation of this rank's
  int ended = 0;   // the communicator
};

class ShortMemory : public testing::TestWithParam<std::string> {};

TEST_P(ShortMemory, ThatARankDoesNotHaveStrandsNobody) {
  for (const Fails how : {Fails::kOnce, Fails::kFromThenOn}) {
    for (const int victim : {0, 1, 2}) {
      SCOPED_TRACE(
          fmt::format("{}, rank {}", how == Fails::kOnce ? "once" : "from then on", victim));
      run_job({.size = kRanks}, [&](Rank& rank) {
        World world = rank.join();
        auto& control = world.communicator();
        control.set_deadline(seconds(40));
        std::optional<Communicator> comm(control.duplicate());
        comm->set_deadline(seconds(20));
        for (std::size_t at = 0; at < 2000; ++at) {
          rank.stage(fmt::format("allocation {}", at));
          const bool is_victim = rank.rank() == victim;
          Given given;
          const auto call = call_of(GetParam(), *comm, given);
          const Outcome outcome = outcome_of([&] {
            if (!is_victim) return call();
            const FailingMemory failing(at, how);
            call();
          });
          const auto says = [&](const char* text) {
            return outcome.message.find(fmt::format(fmt::runtime(text), victim)) !=
                   std::string::npos;
          };
          const bool is_right =
              outcome.ok() || (is_victim && outcome.kind == "bad_alloc") ||
              (outcome.kind == "InvalidArgument" && (is_victim || says("rank {}"))) ||
              (outcome.kind == "Aborted" && says("rank {}"));
          rank.check(is_right,
                     fmt::format("allocation {}: {} {}", at, outcome.kind, outcome.message));
          Report report{.failed = is_victim && FailingMemory::has_failed() ? 1 : 0,
                        .ended = comm->status() ? 1 : 0};
          std::vector<int> all{report.failed, report.ended};
          control.all_reduce(all, {.op = ReduceOp::kMax});
          if (all[1] != 0) {
            comm.emplace(control.duplicate());
            comm->set_deadline(seconds(20));
          } else {
            const std::string wrong = wrong_results(*comm, static_cast<int>(at), 5);
            rank.check(wrong.empty(), fmt::format("after allocation {}: {}", at, wrong));
          }
          if (all[0] == 0) {
            rank.report("allocations", std::to_string(at));
            break;
          }
        }
      });
    }
  }
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Case& each : cases()) all.emplace_back(each.name);
  for (const Collective& each : collectives()) {
    all.push_back(std::string(each.name) + "/small");
    all.push_back(std::string(each.name) + "/large");
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(Memory, ShortMemory, testing::ValuesIn(names()), [](const auto& each) {
  std::string name = each.param;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
});

}  // namespace
}  // namespace hocket::multiprocess
