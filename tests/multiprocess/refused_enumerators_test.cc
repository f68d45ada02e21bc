// Numbers that are none of an enumeration's, in the arguments of one rank. They are refused there
// by the argument's name, and the communicator can be used further.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <mutex>
#include <ostream>
#include <string>
#include <vector>

#include "hocket/compression.h"
#include "hocket/device_pool.h"
#include "hocket/distribution.h"
#include "hocket/extremes.h"
#include "hocket/fft.h"
#include "hocket/grid.h"
#include "hocket/hocket.h"
#include "hocket/live.h"
#include "hocket/matmul.h"
#include "hocket/object.h"
#include "hocket/operator.h"
#include "hocket/redistribute.h"
#include "hocket/sparse.h"
#include "hocket/strided.h"
#include "ranks.h"

namespace hocket::multiprocess {
namespace {

constexpr int kRanks = 3;

// The enumerator, or on the rank that is wrong a number that is none.
struct Wrong {
  bool is_here = false;

  template <typename E>
  E operator()(E right) const {
    return is_here ? static_cast<E>(77) : right;
  }
};

// Arrays of a call. `x` and `y` have 6 elements, `part` and `other` 2.
struct Arrays {
  std::vector<float> x = std::vector<float>(6, 1);
  std::vector<float> y = std::vector<float>(6, 1);
  std::vector<float> part = std::vector<float>(2, 1);
  std::vector<float> other = std::vector<float>(2, 1);
};
ArrayView in_memory(std::vector<float>& x, MemoryKind memory) {
  return {x.data(), x.size(), DType::kFloat32, memory};
}
ArrayView of_dtype(std::vector<float>& x, DType dtype) { return {x.data(), x.size(), dtype}; }

struct Case {
  std::string name;
  std::function<void(Communicator&, const Wrong&)> call;
  std::string told;  // the argument
};
void PrintTo(const Case& its, std::ostream* out) { *out << its.name; }

using Made = std::function<void(Communicator&, Arrays&, ArrayView in, ArrayView out)>;
struct OfArrays {
  std::string name;
  bool takes_part;  // `in` has 2 elements, else 6
  bool gives_part;  // the same of `out`
  Made call;
  std::string in = "in";
  std::string out = "out";
};

std::vector<OfArrays> calls_of_arrays() {
  const std::vector<std::size_t> two{2, 2, 2};
  return {
      {"all_reduce",
       false,
       false,
       [](auto& c, auto&, auto in, auto out) { c.all_reduce(in, out); }},
      {"all_reduce_async",
       false,
       false,
       [](auto& c, auto&, auto in, auto out) { c.all_reduce_async(in, out).wait(); }},
      {"prepare_all_reduce",
       false,
       false,
       [](auto& c, auto&, auto in, auto out) { c.prepare_all_reduce(in, out)(); }},
      {"all_gather", true, false, [](auto& c, auto&, auto in, auto out) { c.all_gather(in, out); }},
      {"reduce_scatter",
       false,
       true,
       [](auto& c, auto&, auto in, auto out) { c.reduce_scatter(in, out); }},
      {"all_to_all",
       false,
       false,
       [](auto& c, auto&, auto in, auto out) { c.all_to_all(in, out); }},
      {"scan", false, false, [](auto& c, auto&, auto in, auto out) { c.scan(in, out); }},
      {"all_gather_v",
       true,
       false,
       [=](auto& c, auto&, auto in, auto out) { c.all_gather_v(in, out, {.counts = two}); }},
      {"all_to_all_v",
       false,
       false,
       [=](auto& c, auto&, auto in, auto out) {
         c.all_to_all_v(in, {.counts = two}, out, {.counts = two});
       }},
      {"all_gather_coalesced",
       true,
       false,
       [](auto& c, auto&, auto in, auto out) { c.all_gather_coalesced({{in}}, {{out}}); }},
      {"reproducible_sum",
       false,
       true,
       [](auto& c, auto&, auto in, auto out) { c.reproducible_sum(in, out); },
       "shards"},
      {"all_reduce_by_an_operator",
       false,
       false,
       [](auto& c, auto&, auto in, auto out) {
         hocket::all_reduce(c, in, out, operator_of<float>([](float a, float b) { return a + b; }));
       }},
      {"argmin",
       false,
       false,
       [](auto& c, auto&, auto in, auto out) {
         std::vector<int> ranks(6);
         argmin(c, in, {.values = out, .ranks = ranks});
       },
       "in",
       "values"},
      {"send_recv",
       false,
       false,
       [](auto& c, auto&, auto in, auto out) {
         c.send_recv(in,
                     (c.rank() + 1) % kRanks,
                     out,
                     (c.rank() + 2) % kRanks,
                     {.deadline = std::chrono::seconds(1)});
       }},
  };
}

// Both arrays of these calls, with a wrong kind of memory and a wrong dtype.
std::vector<Case> of_arrays() {
  std::vector<Case> all;
  for (const OfArrays& each : calls_of_arrays()) {
    for (const bool is_in : {true, false}) {
      for (const bool is_memory : {true, false}) {
        const auto call = [=](Communicator& c, const Wrong& wrong) {
          Arrays arrays;
          std::vector<float>& from = each.takes_part ? arrays.part : arrays.x;
          std::vector<float>& to = each.gives_part ? arrays.other : arrays.y;
          const auto view = [&](std::vector<float>& array, bool is_wrong) -> ArrayView {
            if (!is_wrong) return array;
            return is_memory ? in_memory(array, wrong(MemoryKind::kHost))
                             : of_dtype(array, wrong(DType::kFloat32));
          };
          each.call(c, arrays, view(from, is_in), view(to, !is_in));
        };
        all.push_back(
            {fmt::format(
                 "{}_{}_of_{}", each.name, is_memory ? "memory" : "dtype", is_in ? "in" : "out"),
             call,
             (is_memory ? "memory of " : "") + (is_in ? each.in : each.out)});
      }
    }
  }
  return all;
}

std::vector<Case> of_one_array() {
  return {
      {"all_reduce_op",
       [](Communicator& c, const Wrong& wrong) {
         Arrays arrays;
         c.all_reduce(arrays.x, {.op = wrong(ReduceOp::kSum)});
       },
       "op"},
      {"broadcast_memory",
       [](Communicator& c, const Wrong& wrong) {
         Arrays arrays;
         c.broadcast(in_memory(arrays.x, wrong(MemoryKind::kHost)));
       },
       "memory of inout"},
      {"all_reduce_coalesced_memory",
       [](Communicator& c, const Wrong& wrong) {
         Arrays arrays;
         c.all_reduce_coalesced({{arrays.part, in_memory(arrays.x, wrong(MemoryKind::kHost))}});
       },
       "memory of"},
      {"compressed_all_reduce_memory",
       [](Communicator& c, const Wrong& wrong) {
         Arrays arrays;
         compressed_all_reduce(c, in_memory(arrays.x, wrong(MemoryKind::kHost)));
       },
       "memory of inout"},
      {"hierarchical_all_reduce_memory",
       [](Communicator& c, const Wrong& wrong) {
         Arrays arrays;
         hierarchical_all_reduce(c, in_memory(arrays.x, wrong(MemoryKind::kHost)));
       },
       "memory of inout"},
      {"hierarchical_all_reduce_between",
       [](Communicator& c, const Wrong& wrong) {
         Arrays arrays;
         hierarchical_all_reduce(c, arrays.x, {.between = wrong(BetweenNodes::kExact)});
       },
       "between"},
      {"send_memory",
       [](Communicator& c, const Wrong& wrong) {
         Arrays arrays;
         if (wrong.is_here) c.send(in_memory(arrays.x, wrong(MemoryKind::kHost)), c.rank());
       },
       "memory of in"},
      {"send_async_memory",
       [](Communicator& c, const Wrong& wrong) {
         Arrays arrays;
         if (wrong.is_here) {
           c.send_async(in_memory(arrays.x, wrong(MemoryKind::kHost)), c.rank()).wait();
         }
       },
       "memory of in"},
      {"recv_memory",
       [](Communicator& c, const Wrong& wrong) {
         Arrays arrays;
         if (wrong.is_here) c.recv(in_memory(arrays.x, wrong(MemoryKind::kHost)), c.rank());
       },
       "memory of out"},
      {"recv_async_memory",
       [](Communicator& c, const Wrong& wrong) {
         Arrays arrays;
         if (wrong.is_here) {
           c.recv_async(in_memory(arrays.x, wrong(MemoryKind::kHost)), c.rank()).wait();
         }
       },
       "memory of out"},
      {"send_dtype",
       [](Communicator& c, const Wrong& wrong) {
         Arrays arrays;
         if (wrong.is_here) c.send(of_dtype(arrays.x, wrong(DType::kFloat32)), c.rank());
       },
       "dtype of in"},
      {"symmetric_dtype",
       [](Communicator& c, const Wrong& wrong) {
         static_cast<void>(c.symmetric().empty(3, wrong(DType::kFloat32)));
       },
       "dtype"},
      {"symmetric_memory",
       [](Communicator& c, const Wrong& wrong) {
         static_cast<void>(c.symmetric().empty<float>(3, {.memory = wrong(MemoryKind::kHost)}));
       },
       "memory"},
      {"symmetric_heap",
       [](Communicator& c, const Wrong& wrong) {
         static_cast<void>(c.symmetric().empty<float>(3, {.heap = wrong(SymmetricHeap::kHocket)}));
       },
       "heap"},
      {"operator_dtype",
       [](Communicator& c, const Wrong& wrong) {
         Arrays arrays;
         Operator op = operator_of<float>([](float a, float b) { return a + b; });
         op.dtype = wrong(DType::kFloat32);
         hocket::all_reduce(c, arrays.x, arrays.y, op);
       },
       "dtype"},
      {"object_dtype",
       [](Communicator&, const Wrong& wrong) {
         Arrays arrays;
         static_cast<void>(Object::array(of_dtype(arrays.x, wrong(DType::kFloat32))));
       },
       "dtype"},
      {"object_memory",
       [](Communicator&, const Wrong& wrong) {
         Arrays arrays;
         static_cast<void>(Object::array(in_memory(arrays.x, wrong(MemoryKind::kHost))));
       },
       "memory"},
      {"exchange_of_neighbours_dtype",
       [](Communicator& c, const Wrong& wrong) {
         std::vector<float> x(4);
         Grid grid(c, {kRanks});
         StridedView view = strided(x.data(), {4});
         view.dtype = wrong(DType::kFloat32);
         if (wrong.is_here) grid.neighbour_exchange(view);
       },
       "dtype"},
  };
}

SparseView matrix(std::vector<int>& offsets,
                  std::vector<int>& columns,
                  std::vector<float>& values) {
  return csr_view(2, 2, offsets, columns, values);
}

std::vector<Case> of_matrices() {
  struct Sparse {
    std::vector<int> offsets{0, 1, 2};
    std::vector<int> columns{0, 1};
    std::vector<float> values{1, 2};
    SparseView view() { return matrix(offsets, columns, values); }
  };
  return {
      {"all_gather_sparse_format",
       [](Communicator& c, const Wrong& wrong) {
         Sparse sparse;
         SparseView view = sparse.view();
         view.format = wrong(view.format);
         static_cast<void>(all_gather_sparse(c, view));
       },
       "format"},
      {"all_gather_sparse_memory",
       [](Communicator& c, const Wrong& wrong) {
         Sparse sparse;
         SparseView view = sparse.view();
         view.values = in_memory(sparse.values, wrong(MemoryKind::kHost));
         static_cast<void>(all_gather_sparse(c, view));
       },
       "values"},
      {"all_gather_sparse_dtype",
       [](Communicator& c, const Wrong& wrong) {
         Sparse sparse;
         SparseView view = sparse.view();
         view.values = of_dtype(sparse.values, wrong(DType::kFloat32));
         static_cast<void>(all_gather_sparse(c, view));
       },
       "values"},
      {"all_reduce_sparse_op",
       [](Communicator& c, const Wrong& wrong) {
         Sparse sparse;
         static_cast<void>(all_reduce_sparse(c, sparse.view(), {.op = wrong(SparseOp::kSum)}));
       },
       "op"},
      {"matrix_of_a_layout",
       [](Communicator&, const Wrong& wrong) {
         static_cast<void>(SparseMatrix({.format = wrong(SparseFormat::kCsr),
                                         .rows = 0,
                                         .columns = 0,
                                         .dtypes = {DType::kFloat32, DType::kInt32, DType::kInt32},
                                         .counts = {0, 1, 0}},
                                        std::vector<std::byte>(16)));
       },
       "format"},
  };
}

Box rows_of(const Communicator& c) {
  const auto first = static_cast<std::size_t>(c.rank()) * 2;
  return Box({first, 0}, {first + 2, 4});
}

Case fft_case(std::string name, std::string told, void (*spoil)(FftOptions&, const Wrong&)) {
  return {"fft_" + std::move(name),
          [=](Communicator& c, const Wrong& wrong) {
            FftOptions options{.planning = FftPlanning::kEstimated};
            spoil(options, wrong);
            Fft plan(c, {6, 4}, rows_of(c), rows_of(c), options);
          },
          std::move(told)};
}
Case matmul_case(std::string name,
                 std::string told,
                 void (*spoil)(MatmulOperand&, MatmulOptions&, const Wrong&)) {
  return {"matmul_" + std::move(name),
          [=](Communicator& c, const Wrong& wrong) {
            MatmulOperand a;
            MatmulOptions options;
            spoil(a, options, wrong);
            Matmul plan(c, {6, 6, 6}, a, {}, {}, options);
          },
          std::move(told)};
}

std::vector<Case> of_spread_arrays() {
  return {
      fft_case("kind", "kind", [](auto& o, auto& wrong) { o.kind = wrong(o.kind); }),
      fft_case("norm", "norm", [](auto& o, auto& wrong) { o.norm = wrong(o.norm); }),
      fft_case(
          "planning", "planning", [](auto& o, auto& wrong) { o.planning = wrong(o.planning); }),
      fft_case(
          "precision", "precision", [](auto& o, auto& wrong) { o.precision = wrong(o.precision); }),
      {"fft_direction",
       [](Communicator& c, const Wrong& wrong) {
         std::vector<double> in(16), out(16);
         Fft plan(c, {6, 4}, rows_of(c), rows_of(c), {.planning = FftPlanning::kEstimated});
         plan(ConstArrayView(in.data(), 8, DType::kComplex128),
              ArrayView(out.data(), 8, DType::kComplex128),
              wrong(FftDirection::kForward));
       },
       "direction"},
      {"fft_memory",
       [](Communicator& c, const Wrong& wrong) {
         std::vector<double> in(16), out(16);
         Fft plan(c, {6, 4}, rows_of(c), rows_of(c), {.planning = FftPlanning::kEstimated});
         plan(ConstArrayView(in.data(), 8, DType::kComplex128, wrong(MemoryKind::kHost)),
              ArrayView(out.data(), 8, DType::kComplex128));
       },
       "in"},
      {"redistribute_order",
       [](Communicator& c, const Wrong& wrong) {
         Redistribution plan(c, rows_of(c), rows_of(c), {.order = wrong(MemoryOrder::kC)});
       },
       "order"},
      {"redistribute_memory",
       [](Communicator& c, const Wrong& wrong) {
         std::vector<float> in(8), out(8);
         redistribute(c, in_memory(in, wrong(MemoryKind::kHost)), rows_of(c), out, rows_of(c));
       },
       "memory of in"},
      matmul_case("op", "op", [](auto& a, auto&, auto& wrong) { a.op = wrong(a.op); }),
      matmul_case("order", "order", [](auto& a, auto&, auto& wrong) { a.order = wrong(a.order); }),
      matmul_case("form", "form", [](auto&, auto& o, auto& wrong) { o.form = wrong(o.form); }),
      matmul_case("dtype", "dtype", [](auto&, auto& o, auto& wrong) { o.dtype = wrong(o.dtype); }),
      matmul_case(
          "result", "D is", [](auto&, auto& o, auto& wrong) { o.result = wrong(DType::kFloat64); }),
      {"matmul_memory",
       [](Communicator& c, const Wrong& wrong) {
         std::vector<double> a(12), b(12), d(12);
         Matmul plan(c, {6, 6, 6}, {}, {}, {});
         plan(ConstArrayView(a.data(), 12, DType::kFloat64, wrong(MemoryKind::kHost)), b, d);
       },
       "a"},
  };
}

// Arguments of one process.
std::vector<Case> local_ones() {
  const auto pool = [](void (*use)(DevicePool&, std::vector<ArrayView>&, const Wrong&)) {
    return [=](Communicator&, const Wrong& wrong) {
      DevicePool workers(2, {.pinning = PoolOptions::Pinning::kNone});
      std::vector<float> x(4), y(4);
      std::vector<ArrayView> arrays{x, y};
      use(workers, arrays, wrong);
    };
  };
  return {
      {"grid_layout",
       [](Communicator&, const Wrong& wrong) {
         ProcessGrid grid({2, 2}, wrong(ProcessGrid::Layout::kRowMajor));
       },
       "layout"},
      {"pool_pinning",
       [](Communicator&, const Wrong& wrong) {
         DevicePool workers(1, {.pinning = wrong(PoolOptions::Pinning::kNone)});
       },
       "pinning"},
      {"pool_start",
       pool([](auto& workers, auto&, auto& wrong) {
         workers.map([](PoolWorker&) {}, {.start = wrong(PoolCallOptions::Start::kTogether)});
       }),
       "start"},
      {"pool_op",
       pool([](auto& workers, auto& arrays, auto& wrong) {
         workers.all_reduce(arrays, {.op = wrong(ReduceOp::kSum)});
       }),
       "op"},
      {"pool_order",
       pool([](auto& workers, auto& arrays, auto& wrong) {
         workers.all_reduce(arrays, {.order = wrong(PoolReduceOptions::Order::kAny)});
       }),
       "order"},
      {"pool_mode",
       pool([](auto& workers, auto& arrays, auto& wrong) {
         const std::vector<std::size_t> seams{0};
         workers.exchange_halo(
             arrays, {.rows = 4}, seams, 1, {.mode = wrong(HaloOptions::Mode::kSwap)});
       }),
       "mode"},
      {"pool_memory",
       pool([](auto& workers, auto& arrays, auto& wrong) {
         arrays[1] = {arrays[1].data(), 4, DType::kFloat32, wrong(MemoryKind::kHost)};
         workers.all_reduce(arrays);
       }),
       "memory"},
      {"pool_dtype",
       pool([](auto& workers, auto& arrays, auto& wrong) {
         for (ArrayView& array : arrays) array = {array.data(), 4, wrong(DType::kFloat32)};
         workers.all_reduce(arrays);
       }),
       "dtype"},
      {"metrics_form",
       [](Communicator&, const Wrong& wrong) {
         static_cast<void>(metrics_text({}, wrong(MetricsForm::kPrometheus)));
       },
       "form"},
  };
}

class RefusedEnumerators : public testing::TestWithParam<Case> {};

TEST_P(RefusedEnumerators, AreNamedOnTheirRank) {
  const Case& its = GetParam();
  std::mutex mutex;
  run_threads(kRanks, [&](Communicator& comm) {
    comm.set_deadline(std::chrono::seconds(20));
    for (const int culprit : {1, 0}) {
      const Wrong wrong{comm.rank() == culprit};
      const Outcome outcome = outcome_of([&] { its.call(comm, wrong); });
      const std::string where = fmt::format(
          "rank {} of {}'s mistake: {} {}", comm.rank(), culprit, outcome.kind, outcome.message);
      {
        const std::lock_guard lock(mutex);
        if (wrong.is_here) {
          EXPECT_EQ(outcome.kind, "InvalidArgument") << where;
          EXPECT_NE(outcome.message.find(its.told), std::string::npos) << where;
        } else {
          const bool is_message = its.name.starts_with("send_recv");  // its peers wait in vain
          EXPECT_TRUE(outcome.ok() || is_message || outcome.kind == "InvalidArgument") << where;
        }
      }
      if (its.name.starts_with("send_recv")) return;
      std::vector<int> sum{1};
      comm.all_reduce(sum);
      const std::lock_guard lock(mutex);
      EXPECT_EQ(sum[0], kRanks) << where;
    }
  });
}

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const auto& part :
       {of_arrays(), of_one_array(), of_matrices(), of_spread_arrays(), local_ones()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Refusal,
                         RefusedEnumerators,
                         testing::ValuesIn(all_cases()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace hocket::multiprocess
