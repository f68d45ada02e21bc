// argmin and argmax, on ranks that are threads.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "hocket/extremes.h"
#include "hocket/group.h"

namespace hocket {
namespace {

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

// Many ties, and another lowest rank from place to place.
template <typename T>
T value_of(int rank, std::size_t place) {
  const auto mixed = (static_cast<std::size_t>(rank) * 7 + place * 5 + place / 3) % 6;
  if constexpr (std::is_same_v<T, bool>) {
    return mixed % 2 == 1;
  } else {
    return T(static_cast<float>(mixed));
  }
}

std::uint16_t index_of(int rank, std::size_t place) {
  return static_cast<std::uint16_t>(1000 * rank + static_cast<int>(place));
}

// std::vector<bool> is none of arrays.
template <typename T>
struct Array {
  explicit Array(std::size_t size) : elements(new T[size]()), count(size) {}
  T& operator[](std::size_t i) { return elements[i]; }
  ArrayView view() { return {elements.get(), count, dtype_of<T>}; }
  std::unique_ptr<T[]> elements;
  std::size_t count;
};

template <typename T>
void check(Communicator& comm, std::size_t count, bool greatest) {
  Array<T> x(count), values(count);
  Array<std::int32_t> ranks(count);
  Array<std::uint16_t> index(count), indices(count);
  for (std::size_t i = 0; i < count; ++i) {
    x[i] = value_of<T>(comm.rank(), i);
    index[i] = index_of(comm.rank(), i);
  }
  const auto find = greatest ? argmax : argmin;
  find(comm, x.view(), {values.view(), ranks.view(), indices.view()}, {.index = index.view()});
  Array<std::int32_t> alone(count);
  find(comm, x.view(), {values.view(), alone.view()}, {});
  for (std::size_t i = 0; i < count; ++i) {
    int best = 0;
    for (int rank = 1; rank < comm.size(); ++rank) {
      const T theirs = value_of<T>(rank, i), so_far = value_of<T>(best, i);
      if (greatest ? theirs > so_far : theirs < so_far) best = rank;
    }
    const std::string where = std::string(name_of(dtype_of<T>)) + " at " + std::to_string(i);
    require(values[i] == value_of<T>(best, i), "value of " + where);
    require(ranks[i] == best && alone[i] == best, "rank of " + where);
    require(indices[i] == index_of(best, i), "index of " + where);
    require(x[i] == value_of<T>(comm.rank(), i), "x of " + where);
  }
}

template <typename... T>
void check_all(Communicator& comm) {
  for (const std::size_t count : {0, 1, 2, 17, 3000}) {
    for (const bool greatest : {false, true}) (check<T>(comm, count, greatest), ...);
  }
}

class Extreme : public testing::TestWithParam<int> {};

TEST_P(Extreme, IsFoundInEveryDtype) {
  run_threads(GetParam(), [](Communicator& comm) {
    check_all<bool,
              std::int8_t,
              std::int16_t,
              std::int32_t,
              std::int64_t,
              std::uint8_t,
              std::uint16_t,
              std::uint32_t,
              std::uint64_t,
              float16,
              bfloat16,
              float8_e4m3,
              float8_e5m2,
              float,
              double>(comm);
  });
}
INSTANTIATE_TEST_SUITE_P(Ranks, Extreme, testing::Values(1, 2, 3, 4, 5));

TEST(Extremes, NanAndZeros) {
  run_threads(4, [](Communicator& comm) {
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    // By rank: NaN of two; zeros of both signs; infinities.
    const std::vector<std::vector<float>> all{
        {1, 0.0F, kInfinity}, {5, -0.0F, kInfinity}, {kNan, 0.0F, -kInfinity}, {-kNan, 1, 0}};
    const std::vector<float>& x = all[static_cast<std::size_t>(comm.rank())];
    std::vector<float> values(3);
    std::vector<std::int32_t> ranks(3);
    argmin(comm, x, {values, ranks});
    require(std::isnan(values[0]) && values[1] == 0 && values[2] == -kInfinity, "least");
    require(ranks == std::vector<std::int32_t>{2, 0, 2}, "who has the least");
    argmax(comm, x, {values, ranks});
    require(std::isnan(values[0]) && values[1] == 1 && values[2] == kInfinity, "greatest");
    require(ranks == std::vector<std::int32_t>{2, 3, 0}, "who has the greatest");
  });
}

// Throws InvalidArgument on all ranks, and all go on afterwards.
template <typename Call>
void refused(const std::string& text, const Call& call) {
  std::string found;
  try {
    call();
  } catch (const InvalidArgument& error) {
    found = error.what();
  }
  require(found.find(text) != std::string::npos, "expected '" + text + "', found '" + found + "'");
}

TEST(Extremes, WhatIsWrongOnOneRankIsRefusedOnAll) {
  run_threads(3, [](Communicator& comm) {
    std::vector<double> x(4, comm.rank()), values(4);
    std::vector<std::int32_t> ranks(4);
    std::vector<std::int64_t> index(4), indices(4);
    const bool odd = comm.rank() == 1;
    const auto with = [&](ArrayView v, ArrayView r, ArrayView i) {
      argmin(comm, x, {v, r, i}, {.index = index});
    };
    refused("values and ranks overlap", [&] {
      std::vector<double> room(8);
      const ArrayView inside(room.data(), 4, DType::kInt32);
      with(odd ? ArrayView(room).slice(0, 4) : ArrayView(values), odd ? inside : ranks, indices);
    });
    refused("in and values overlap", [&] { with(odd ? x : values, ranks, indices); });
    refused("ranks is int64[4], expected int32[4]",
            [&] { with(values, odd ? ArrayView(indices) : ArrayView(ranks), indices); });
    refused("values is float64[3], expected float64[4]",
            [&] { with(odd ? ArrayView(values).slice(0, 3) : ArrayView(values), ranks, indices); });
    refused("indices is uint8[0], expected int64[4]",
            [&] { with(values, ranks, odd ? ArrayView() : ArrayView(indices)); });
    refused("index holds float64, expected integers", [&] {
      const ConstArrayView given = odd ? ConstArrayView(x) : ConstArrayView(index);
      argmin(comm, x, {values, ranks, indices}, {.index = given});
    });
    refused("indices is given and index is not", [&] {
      argmax(comm,
             x,
             {values, ranks, indices},
             {.index = odd ? std::nullopt : std::optional<ConstArrayView>(index)});
    });
    refused("have no order", [&] {
      std::vector<std::complex<double>> z(4), extremes(4);
      argmin(comm, odd ? ConstArrayView(z) : x, {odd ? ArrayView(extremes) : values, ranks});
    });
    refused("in and values lie in different kinds of memory", [&] {
      const ConstArrayView elsewhere(x.data(), 4, DType::kFloat64, MemoryKind::kCuda);
      argmin(comm, odd ? elsewhere : ConstArrayView(x), {values, ranks});
    });
    argmin(comm, x, {values, ranks, indices}, {.index = index});
    require(ranks == std::vector<std::int32_t>(4), "afterwards");
  });
}

TEST(Extremes, DifferentCallsAreAMismatch) {
  int refusals = 0;
  run_threads(2, [&](Communicator& comm) {
    std::vector<float> x(3), values(3);
    std::vector<std::int32_t> ranks(3);
    try {
      if (comm.rank() == 0) {
        argmin(comm, x, {values, ranks});
      } else {
        comm.all_reduce(x, values, {.op = ReduceOp::kMin});
        comm.all_reduce(ranks, {.op = ReduceOp::kMin});
      }
    } catch (const Mismatch&) {
      if (comm.rank() == 0) ++refusals;
    }
  });
  EXPECT_EQ(refusals, 1);
}

}  // namespace
}  // namespace hocket
