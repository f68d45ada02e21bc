// Reductions by an operator of one's own, on ranks that are threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "hocket/group.h"
#include "hocket/operator.h"

namespace hocket {
namespace {

using Doubles = std::vector<double>;

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

// Neither commutative nor associative: any other order gives other numbers.
constexpr auto kHalfAndAll = [](double a, double b) { return a * 0.5 + b; };

Doubles values_of(int rank, std::size_t count) {
  Doubles values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] =
        static_cast<double>(i % 1000) + 1000.0 * (rank + 1) + 1.0 / static_cast<double>(i + 3);
  }
  return values;
}

// The combination of ranks 0 to `last`.
Doubles combined(int last, std::size_t count) {
  Doubles sum = values_of(0, count);
  for (int rank = 1; rank <= last; ++rank) {
    const Doubles next = values_of(rank, count);
    for (std::size_t i = 0; i < count; ++i) sum[i] = kHalfAndAll(sum[i], next[i]);
  }
  return sum;
}

class ByOperator : public testing::TestWithParam<int> {};

TEST_P(ByOperator, RanksAreTakenInOrder) {
  const int n = GetParam();
  for (const std::size_t count : {0, 1, 2, 3, 17, 1000, 600001}) {
    std::vector<Doubles> prefix;
    for (int rank = 0; rank < n; ++rank) prefix.push_back(combined(rank, count));
    run_threads(n, [&](Communicator& comm) {
      const auto op = operator_of<double>(kHalfAndAll);
      const auto rank = static_cast<std::size_t>(comm.rank());
      const Doubles in = values_of(comm.rank(), count);
      const Doubles& all = prefix.back();
      const std::string where = std::to_string(count) + " elements, rank " + std::to_string(rank);
      Doubles out(count), x = in;
      all_reduce(comm, in, out, op);
      all_reduce(comm, x, x, op);
      require(out == all && x == all, "all_reduce of " + where);
      for (int root = 0; root < n; ++root) {
        out.assign(count, -1);
        x = in;
        const bool is_root = comm.rank() == root;
        reduce(comm, in, is_root ? ArrayView(out) : ArrayView(), op, {.root = root});
        reduce(comm, x, x, op, {.root = root});
        require(out == (is_root ? all : Doubles(count, -1)), "reduce of " + where);
        require(x == (is_root ? all : in), "reduce in place of " + where);
      }
      out.assign(count, -1);
      x = in;
      scan(comm, in, out, op);
      scan(comm, x, x, op);
      require(out == prefix[rank] && x == prefix[rank], "scan of " + where);
      out.assign(count, -1);
      x = in;
      exscan(comm, in, rank == 0 ? ArrayView() : ArrayView(out), op);
      exscan(comm, x, x, op);
      require(out == (rank == 0 ? Doubles(count, -1) : prefix[rank - 1]), "exscan of " + where);
      require(x == (rank == 0 ? in : prefix[rank - 1]), "exscan in place of " + where);
    });
  }
}

TEST_P(ByOperator, SharesAreScattered) {
  const int n = GetParam();
  for (const std::size_t share : {0, 1, 5, 300001}) {
    const std::size_t count = share * static_cast<std::size_t>(n);
    const Doubles all = combined(n - 1, count);
    run_threads(n, [&](Communicator& comm) {
      const auto op = operator_of<double>(kHalfAndAll);
      Doubles x = values_of(comm.rank(), count), out(share);
      reduce_scatter(comm, x, out, op);
      const auto* const mine = all.data() + static_cast<std::size_t>(comm.rank()) * share;
      require(std::equal(out.begin(), out.end(), mine), "reduce_scatter");
      reduce_scatter(comm, x, ArrayView(x).slice(0, share), op);
      require(std::equal(out.begin(), out.end(), x.begin()), "reduce_scatter in place");
    });
  }
}

// Products of matrices of two by two, which are not to be cut.
using Matrix = std::array<std::uint32_t, 4>;

Matrix times(const Matrix& a, const Matrix& b) {
  return {a[0] * b[0] + a[1] * b[2],
          a[0] * b[1] + a[1] * b[3],
          a[2] * b[0] + a[3] * b[2],
          a[2] * b[1] + a[3] * b[3]};
}

void multiply(void* left, const void* right, std::size_t count, void* context) {
  if (count % 4 != 0) throw std::runtime_error("a matrix was cut");
  ++*static_cast<std::atomic<int>*>(context);
  auto* a = static_cast<Matrix*>(left);
  const auto* b = static_cast<const Matrix*>(right);
  for (std::size_t i = 0; i < count / 4; ++i) a[i] = times(a[i], b[i]);
}

Matrix matrix_of(int rank, std::size_t i) {
  const auto r = static_cast<std::uint32_t>(rank), k = static_cast<std::uint32_t>(i);
  return {r + 2, k + 3, 5 * r + 1, r * k + 7};
}

TEST_P(ByOperator, UnitsStayWhole) {
  const int n = GetParam();
  for (const std::size_t matrices : {1, 2, 7, 100}) {
    run_threads(n, [&](Communicator& comm) {
      std::atomic<int> calls = 0;
      const Operator op{.combine = multiply, .context = &calls, .dtype = DType::kUInt32, .unit = 4};
      std::vector<Matrix> x, wanted;
      for (std::size_t i = 0; i < matrices; ++i) {
        x.push_back(matrix_of(comm.rank(), i));
        Matrix product = matrix_of(0, i);
        for (int rank = 1; rank < n; ++rank) product = times(product, matrix_of(rank, i));
        wanted.push_back(product);
      }
      const ArrayView view(x.data(), matrices * 4, DType::kUInt32);
      all_reduce(comm, view, view, op);
      require(x == wanted, "products");
      require(calls <= n, "a part is combined at once");
    });
  }
}
INSTANTIATE_TEST_SUITE_P(Ranks, ByOperator, testing::Values(1, 2, 3, 4, 5));

using Call = std::function<void(Communicator&, Doubles&, const Operator&)>;
const std::vector<Call>& all_calls() {
  static const std::vector<Call> calls{
      [](auto& comm, auto& x, const auto& op) { all_reduce(comm, x, x, op); },
      [](auto& comm, auto& x, const auto& op) { reduce(comm, x, x, op, {.root = 1}); },
      [](auto& comm, auto& x, const auto& op) {
        const auto share = x.size() / static_cast<std::size_t>(comm.size());
        reduce_scatter(comm, x, ArrayView(x).slice(0, share), op);
      },
      [](auto& comm, auto& x, const auto& op) { scan(comm, x, x, op); },
      [](auto& comm, auto& x, const auto& op) { exscan(comm, x, x, op); }};
  return calls;
}

std::string refusal_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "nothing";
}

TEST(Operators, OneThatFailsOnOneRankFailsOnAll) {
  for (const std::size_t count : {3, 6, 2999, 900000}) {
    run_threads(3, [&](Communicator& comm) {
      for (const Call& call : all_calls()) {
        for (int failing = 0; failing < 3; ++failing) {
          if (count % 3 != 0 && &call == &all_calls()[2]) continue;
          int calls = 0;  // the last rounds are as good as the first
          const auto bad = [&](double a, double b) {
            if (comm.rank() == failing && ++calls % 200000 == (count > 6 ? 900 : 1)) {
              throw std::runtime_error("it cannot be");
            }
            return a + b;
          };
          Doubles x(count, 1);
          const std::string found = refusal_of([&] { call(comm, x, operator_of<double>(bad)); });
          const std::string text =
              "the operator has failed on rank " + std::to_string(failing) + ": it cannot be";
          require(found.find(text) != std::string::npos, "'" + text + "', found '" + found + "'");
          x.assign(count, 1);
          const auto good = [](double a, double b) { return a + b; };
          all_reduce(comm, x, x, operator_of<double>(good));
          require(x == Doubles(count, 3), "afterwards");
        }
      }
    });
  }
}

TEST(Operators, WhatIsWrongOnOneRankIsRefusedOnAll) {
  run_threads(3, [](Communicator& comm) {
    const auto op = operator_of<double>(kHalfAndAll);
    const bool odd = comm.rank() == 1;
    Doubles in(6, 1), out(6);
    std::vector<float> single(6);
    const auto refused = [&](const std::string& text, const std::function<void()>& call) {
      const std::string found = refusal_of(call);
      require(found.find(text) != std::string::npos, "'" + text + "', found '" + found + "'");
    };
    refused("the operator has no function", [&] { scan(comm, in, out, odd ? Operator{} : op); });
    refused("unit is 0", [&] {
      Operator other = op;
      if (odd) other.unit = 0;
      exscan(comm, in, out, other);
    });
    refused("6 elements are no whole number of the operator's 4", [&] {
      Operator other = op;
      if (odd) other.unit = 4;
      all_reduce(comm, in, out, other);
    });
    refused("in holds float32, and the operator is for float64", [&] {
      reduce(comm, odd ? ConstArrayView(single) : in, odd ? ArrayView(single) : out, op);
    });
    refused("out is float64[5], expected float64[6]",
            [&] { all_reduce(comm, in, odd ? ArrayView(out).slice(0, 5) : ArrayView(out), op); });
    refused("overlap", [&] {
      Doubles room(7);
      all_reduce(comm,
                 odd ? ArrayView(room).slice(0, 6) : ArrayView(in),
                 odd ? ArrayView(room).slice(1, 6) : ArrayView(out),
                 op);
    });
    refused("root is 3", [&] { reduce(comm, in, out, op, {.root = odd ? 3 : 0}); });
    refused("do not divide", [&] {
      reduce_scatter(comm, ArrayView(in).slice(0, odd ? 5 : 6), ArrayView(out).slice(0, 2), op);
    });
    refused("lies in a GPU's memory", [&] {
      const ArrayView elsewhere(in.data(), 6, DType::kFloat64, MemoryKind::kCuda);
      all_reduce(comm, odd ? elsewhere : ArrayView(in), out, op);
    });
    all_reduce(comm, in, out, op);
    require(out == Doubles(6, 1.75), "afterwards");
    Operator vast = op;
    vast.unit = std::size_t{1} << 61;
    all_reduce(comm, ArrayView(in).slice(0, 0), ArrayView(out).slice(0, 0), vast);
  });
}

TEST(Operators, DifferentCallsAreAMismatch) {
  run_threads(2, [](Communicator& comm) {
    Doubles x(4, 1);
    std::string found;
    try {
      if (comm.rank() == 0) {
        all_reduce(comm, x, x, operator_of<double>(kHalfAndAll));
      } else {
        comm.all_reduce(x);
      }
    } catch (const Mismatch& error) {
      found = error.what();
    }
    require(found.find("all_reduce #1 by an operator float64[4]") != std::string::npos, found);
    require(found.find("all_reduce #1 sum float64[4]") != std::string::npos, found);
  });
}

double larger(double a, double b) noexcept { return a > b ? a : b; }

// Plain functions, overloaded ones, and temporaries without state do what they say.
TEST(Operators, DifferentIdentitiesAreAMismatch) {
  for (const bool differ : {false, true}) {
    run_threads(2, [&](Communicator& comm) {
      Operator op = operator_of<double>(kHalfAndAll);
      op.identity = differ && comm.rank() == 1 ? 8 : 7;
      Doubles x = values_of(comm.rank(), 9);
      std::string text;
      try {
        all_reduce(comm, x, x, op);
      } catch (const Mismatch& error) {
        text = error.what();
      }
      require((text.find("with another operator") != std::string::npos) == differ, text);
      if (!differ) require(x == combined(1, 9), "another sum");
    });
  }
}

TEST(OperatorOf, TakesFunctions) {
  run_threads(3, [](Communicator& comm) {
    double (*pointer)(double, double) = larger;
    const double mine = comm.rank() == 1 ? 7.0 : comm.rank();
    const std::vector<std::pair<Operator, double>> rows{
        {operator_of<double>(larger), 7},
        {operator_of<double>(&larger), 7},
        {operator_of<double>(pointer), 7},
        {operator_of<double>(std::fmax), 7},
        {operator_of<double>(std::max<double>), 7},
        {operator_of<double>(std::plus<>{}), 9},
        {operator_of<double>([](double a, double b) { return a * 10 + b; }), 72}};
    for (std::size_t i = 0; i < rows.size(); ++i) {
      Doubles x(5, mine);
      all_reduce(comm, x, x, rows[i].first);
      require(x == Doubles(5, rows[i].second), "row " + std::to_string(i));
    }
  });
}

}  // namespace
}  // namespace hocket
