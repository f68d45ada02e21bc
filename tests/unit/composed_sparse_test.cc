// Sparse matrices between ranks that are threads, held against dense ones.
#include <gtest/gtest.h>

#include <array>
#include <complex>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "calls/composed/sparse_layout.h"
#include "hocket/group.h"
#include "hocket/sparse.h"

namespace hocket {
namespace {

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

template <typename F>
std::string refusal(F&& call) {
  try {
    call();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "nothing";
}

using Dense = std::vector<double>;  // row by row

// Whole numbers, partly zero, that differ by rank, place and position.
double element(int rank, int place, std::size_t row, std::size_t column) {
  const auto mixed = (row * 7 + column * 3 + static_cast<std::size_t>(rank) * 5 +
                      static_cast<std::size_t>(place)) %
                     6;
  return mixed < 3 ? 0 : static_cast<double>(mixed - 2);
}

Dense dense_of(int rank, int place, std::size_t rows, std::size_t columns) {
  Dense dense;
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) dense.push_back(element(rank, place, i, j));
  }
  return dense;
}

template <typename T, typename I>
SparseMatrix to_sparse(const Dense& dense, std::size_t rows, std::size_t columns, SparseFormat f) {
  std::vector<I> offsets, indices;
  std::vector<T> values;
  const bool by_columns = f == SparseFormat::kCsc;
  const std::size_t outer = by_columns ? columns : rows;
  const std::size_t inner = by_columns ? rows : columns;
  for (std::size_t i = 0; i < outer; ++i) {
    if (f != SparseFormat::kCoo) offsets.push_back(static_cast<I>(values.size()));
    for (std::size_t j = 0; j < inner; ++j) {
      const double value = by_columns ? dense[j * columns + i] : dense[i * columns + j];
      if (value == 0) continue;
      if (f == SparseFormat::kCoo) offsets.push_back(static_cast<I>(i));
      indices.push_back(static_cast<I>(j));
      values.push_back(static_cast<T>(value));
    }
  }
  if (f != SparseFormat::kCoo) offsets.push_back(static_cast<I>(values.size()));
  // bool has no contiguous vector.
  std::vector<std::byte> raw(values.size() * sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T value = values[i];
    std::memcpy(raw.data() + i * sizeof(T), &value, sizeof(T));
  }
  const ConstArrayView view(raw.data(), values.size(), dtype_of<T>);
  return SparseMatrix({f, rows, columns, view, offsets, indices});
}

template <typename I>
std::size_t at(ConstArrayView array, std::size_t i) {
  return static_cast<std::size_t>(static_cast<const I*>(array.data())[i]);
}
std::size_t index(ConstArrayView array, std::size_t i) {
  return array.dtype() == DType::kInt32 ? at<std::int32_t>(array, i) : at<std::int64_t>(array, i);
}

template <typename T>
Dense to_dense(const SparseMatrix& matrix) {
  const SparseView view = matrix;
  Dense dense(view.rows * view.columns);
  const auto put = [&](std::size_t row, std::size_t column, std::size_t i) {
    T value;
    std::memcpy(
        &value, static_cast<const std::byte*>(view.values.data()) + i * sizeof(T), sizeof(T));
    double number;
    if constexpr (requires { value.real(); })
      number = static_cast<double>(value.real());
    else
      number = static_cast<double>(value);
    dense[row * view.columns + column] += number;
  };
  if (view.format == SparseFormat::kCoo) {
    for (std::size_t i = 0; i < view.values.count(); ++i) {
      put(index(view.offsets, i), index(view.indices, i), i);
    }
    return dense;
  }
  const bool by_columns = view.format == SparseFormat::kCsc;
  for (std::size_t i = 0; i < (by_columns ? view.columns : view.rows); ++i) {
    for (std::size_t k = index(view.offsets, i); k < index(view.offsets, i + 1); ++k) {
      const std::size_t j = index(view.indices, k);
      by_columns ? put(j, i, k) : put(i, j, k);
    }
  }
  return dense;
}

Dense multiply(const Dense& a, const Dense& b, std::size_t n) {
  Dense c(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < n; ++k) {
      for (std::size_t j = 0; j < n; ++j) c[i * n + j] += a[i * n + k] * b[k * n + j];
    }
  }
  return c;
}

struct Case {
  int ranks;
  SparseFormat format;
};

class SparseCollectives : public testing::TestWithParam<Case> {};

template <typename T, typename I>
void every_call(Communicator& comm, SparseFormat format) {
  constexpr std::size_t kSize = 5;
  const int n = comm.size();
  const auto one = [&](int rank, int place) {
    return to_sparse<T, I>(dense_of(rank, place, kSize, kSize), kSize, kSize, format);
  };
  const auto expect = [&](const SparseMatrix& got, const Dense& wanted, const std::string& what) {
    require(got.format() == format && got.dtype() == dtype_of<T>, what + ": another kind");
    require(to_dense<T>(got) == wanted, what + ": other values");
  };
  const auto dense = [&](int rank, int place) { return dense_of(rank, place, kSize, kSize); };
  const SparseMatrix mine = one(comm.rank(), 0);
  std::vector<SparseMatrix> list;
  for (int place = 0; place < n; ++place) list.push_back(one(comm.rank(), place));
  const std::vector<SparseView> views(list.begin(), list.end());

  for (int root = 0; root < n; ++root) {
    expect(broadcast_sparse(comm, mine, {.root = root}), dense(root, 0), "broadcast");
    expect(scatter_sparse(comm, views, {.root = root}), dense(root, comm.rank()), "scatter");
    const auto gathered = gather_sparse(comm, mine, {.root = root});
    require(gathered.size() == (comm.rank() == root ? static_cast<std::size_t>(n) : 0), "gather");
    for (int r = 0; r < static_cast<int>(gathered.size()); ++r) {
      expect(gathered[static_cast<std::size_t>(r)], dense(r, 0), "gather");
    }
    Dense product = dense(root, 0);
    for (int r = 0; r < n; ++r) {
      if (r != root) product = multiply(product, dense(r, 0), kSize);
    }
    const SparseMatrix multiplied =
        reduce_sparse(comm, mine, {.op = SparseOp::kMatrixProduct, .root = root});
    if (comm.rank() == root) expect(multiplied, product, "reduce product");
  }
  Dense sum(kSize * kSize), own(kSize * kSize);
  for (int r = 0; r < n; ++r) {
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i] += dense(r, 0)[i];
      own[i] += dense(r, comm.rank())[i];
    }
  }
  expect(all_reduce_sparse(comm, mine), sum, "all_reduce");
  expect(reduce_scatter_sparse(comm, views), own, "reduce_scatter");
  const auto all = all_gather_sparse(comm, mine);
  const auto came = all_to_all_sparse(comm, views);
  for (int r = 0; r < n; ++r) {
    expect(all[static_cast<std::size_t>(r)], dense(r, 0), "all_gather");
    expect(came[static_cast<std::size_t>(r)], dense(r, comm.rank()), "all_to_all");
  }
  if (comm.rank() == 0 && n > 1) send_sparse(comm, mine, 1, {.tag = 3});
  if (comm.rank() == 1) expect(recv_sparse(comm, 0, {.tag = 3}), dense(0, 0), "recv");
}

// Another message lies between the two that a matrix is sent as.
TEST(SparseMessages, OfAnyTagAreReceivedWhole) {
  run_threads(2, [](Communicator& comm) {
    const Dense dense = dense_of(0, 0, 5, 5);
    const auto matrix = to_sparse<double, std::int32_t>(dense, 5, 5, SparseFormat::kCsr);
    std::vector<std::byte> bytes(matrix.layout().start(3));
    if (comm.rank() == 0) {
      std::vector<std::int64_t> words(composed::kSparseWords);
      composed::encode(matrix.layout(), words.data());
      composed::pack(matrix, matrix.layout(), bytes.data());
      comm.send(words, 1, {.tag = 3});
      const std::vector<std::byte> other(bytes.size());
      Work sending = comm.send_async(other, 1, {.tag = 5});
      comm.send(bytes, 1, {.tag = 3});
      sending.wait();
    } else {
      const SparseMatrix found = recv_sparse(comm, kAnySource, {.tag = kAnyTag});
      require(to_dense<double>(found) == dense, "other entries");
      comm.recv(bytes, 0, {.tag = 5});
    }
  });
}

TEST_P(SparseCollectives, MatchDenseOnes) {
  const auto [ranks, format] = GetParam();
  run_threads(ranks, [&](Communicator& comm) {
    every_call<double, std::int32_t>(comm, format);
    every_call<float, std::int64_t>(comm, format);
    every_call<std::int64_t, std::int32_t>(comm, format);
    every_call<std::complex<float>, std::int32_t>(comm, format);
  });
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (int ranks = 1; ranks <= 5; ++ranks) {
    for (const auto f : {SparseFormat::kCsr, SparseFormat::kCsc, SparseFormat::kCoo}) {
      all.push_back({ranks, f});
    }
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(RanksAndFormats, SparseCollectives, testing::ValuesIn(cases()));

TEST(Sparse, EveryElementTypeIsAdded) {
  run_threads(2, [](Communicator& comm) {
    const auto check = [&]<typename T>() {
      const Dense dense{0, 1, 1, 0};
      const auto matrix = to_sparse<T, std::int32_t>(dense, 2, 2, SparseFormat::kCsr);
      const double two = std::is_same_v<T, bool> ? 1 : 2;
      require(to_dense<T>(all_reduce_sparse(comm, matrix)) == Dense({0, two, two, 0}),
              std::string(name_of(dtype_of<T>)));
    };
    check.template operator()<bool>();
    check.template operator()<std::uint8_t>();
    check.template operator()<std::int16_t>();
    check.template operator()<float16>();
    check.template operator()<bfloat16>();
    check.template operator()<float8_e4m3>();
    check.template operator()<std::complex<double>>();
  });
}

TEST(Sparse, RanksMayDifferInShapeTypeAndWidthWhereNothingIsAdded) {
  run_threads(3, [](Communicator& comm) {
    const std::vector<SparseMatrix> kinds{
        to_sparse<float, std::int64_t>(dense_of(0, 0, 2, 7), 2, 7, SparseFormat::kCoo),
        to_sparse<double, std::int32_t>(dense_of(1, 0, 4, 3), 4, 3, SparseFormat::kCsr),
        SparseMatrix(csc_view(0,
                              0,
                              std::vector<std::int32_t>{0},
                              std::vector<std::int32_t>{},
                              std::vector<float>{}))};
    const auto all = all_gather_sparse(comm, kinds[static_cast<std::size_t>(comm.rank())]);
    for (std::size_t r = 0; r < 3; ++r) require(all[r].layout() == kinds[r].layout(), "layout");
    require(to_dense<float>(all[0]) == dense_of(0, 0, 2, 7), "coo");
    require(to_dense<double>(all[1]) == dense_of(1, 0, 4, 3), "csr");
  });
}

TEST(Sparse, WhatOneRankGetsWrongAllHearOf) {
  run_threads(2, [](Communicator& comm) {
    const auto good =
        to_sparse<double, std::int32_t>(dense_of(0, 0, 3, 3), 3, 3, SparseFormat::kCsr);
    SparseView bad = good;
    const std::vector<std::int32_t> wide(good.entries(), 3);
    bad.indices = wide;
    std::string text = refusal([&] { reduce_sparse(comm, comm.rank() == 1 ? bad : good.view()); });
    require(text.find("indices holds 3, expected 0 to 2") != std::string::npos, text);

    bad = good;
    std::vector<std::int32_t> late(4, static_cast<std::int32_t>(good.entries()));
    late[0] = 1;
    bad.offsets = late;
    text = refusal(
        [&] { static_cast<void>(all_reduce_sparse(comm, comm.rank() == 1 ? bad : good.view())); });
    require(text.find("offsets begins with 1, expected 0") != std::string::npos, text);
    late[0] = 0;
    late[3] = static_cast<std::int32_t>(good.entries()) + 3;
    text = refusal([&] { send_sparse(comm, bad, comm.rank()); });
    require(text.find("expected rising numbers to the") != std::string::npos, text);

    bad = good;
    bad.rows = 4;
    text = refusal(
        [&] { static_cast<void>(all_gather_sparse(comm, comm.rank() == 0 ? bad : good.view())); });
    require(text.find("expected as many indices as values, and 5 offsets") != std::string::npos,
            text);

    bad = good;
    bad.values = {nullptr, bad.values.count(), bad.values.dtype()};
    text = refusal(
        [&] { static_cast<void>(all_gather_sparse(comm, comm.rank() == 0 ? bad : good.view())); });
    require(text.find("elements at a null address") != std::string::npos, text);
    bad.values = {good.view().values.data(), bad.values.count(), static_cast<DType>(99)};
    text = refusal(
        [&] { static_cast<void>(all_gather_sparse(comm, comm.rank() == 0 ? bad : good.view())); });
    require(text.find("the dtype of values of mine is none of") != std::string::npos, text);
    bad = good;
    bad.columns = SIZE_MAX;
    text = refusal(
        [&] { static_cast<void>(all_gather_sparse(comm, comm.rank() == 0 ? bad : good.view())); });
    require(text.find("entries is more than can be counted") != std::string::npos, text);

    const auto other =
        to_sparse<double, std::int32_t>(dense_of(0, 0, 3, 2), 3, 2, SparseFormat::kCsr);
    text = refusal(
        [&] { static_cast<void>(all_reduce_sparse(comm, comm.rank() == 1 ? other : good)); });
    require(text.find("3 x 2, expected 3 rows and 3 columns") != std::string::npos, text);
    text = refusal([&] {
      static_cast<void>(all_reduce_sparse(
          comm, comm.rank() == 0 ? other : good, {.op = SparseOp::kMatrixProduct}));
    });
    require(text.find("expected 2 rows") != std::string::npos, text);

    text = refusal([&] { scatter_sparse(comm, {}, {.root = 1}); });
    require(text.find("matrices has 0 entries, expected 2") != std::string::npos, text);

    const auto sum = to_dense<double>(all_reduce_sparse(comm, good));
    require(sum[1] == 2 * dense_of(0, 0, 3, 3)[1], "it goes on");
  });
}

TEST(Sparse, DuplicatesOfCooAreAdded) {
  run_threads(1, [](Communicator& comm) {
    const std::vector<std::int32_t> rows{1, 0, 1}, columns{0, 1, 0};
    const std::vector<float> values{1, 2, 4};
    const auto sum = all_reduce_sparse(comm, coo_view(2, 2, rows, columns, values));
    require(sum.entries() == 2 && to_dense<float>(sum) == Dense({0, 2, 5, 0}), "duplicates");
  });
}

TEST(Sparse, SumsOfCooTakeMemoryForTheEntriesAlone) {
  run_threads(2, [](Communicator& comm) {
    constexpr std::size_t kExtent = std::size_t{1} << 50;
    constexpr std::int64_t kFar = std::int64_t{1} << 49;
    const std::vector<std::int64_t> rows{kFar, 1, kFar}, columns{0, kFar, 0};
    // 1e8 is added before the ones, rank by rank, as for small shapes.
    const std::vector<float> values{comm.rank() == 0 ? 1e8F : 1.0F, 2, 1};
    const SparseMatrix sum =
        all_reduce_sparse(comm, coo_view(kExtent, kExtent, rows, columns, values));
    const std::vector<std::int64_t> small_rows{1, 0, 1}, small_columns{0, 0, 0};
    const auto small = all_reduce_sparse(comm, coo_view(2, 1, small_rows, small_columns, values));
    require(sum.rows() == kExtent && sum.entries() == 2, "the shape of the sum");
    const auto entries = [](const SparseMatrix& matrix) {
      const SparseView view = matrix.view();
      const auto* data = static_cast<const float*>(view.values.data());
      return std::vector<float>(data, data + view.values.count());
    };
    require(entries(sum) == entries(small) && entries(sum)[0] == 4, "the values of the sum");
    const SparseView view = sum.view();
    const auto* found_rows = static_cast<const std::int64_t*>(view.offsets.data());
    const auto* found_columns = static_cast<const std::int64_t*>(view.indices.data());
    require(found_rows[0] == 1 && found_columns[0] == kFar, "the first place");
    require(found_rows[1] == kFar && found_columns[1] == 0, "the second place");
  });
}

// A broken peer could otherwise have this rank read beyond its arrays.
TEST(Sparse, WordsOfAPeerDescribeAMatrixOrAreRefused) {
  for (const SparseFormat format : {SparseFormat::kCsr, SparseFormat::kCsc, SparseFormat::kCoo}) {
    const SparseLayout layout =
        to_sparse<float, std::int32_t>(dense_of(0, 0, 3, 5), 3, 5, format).layout();
    std::array<std::int64_t, composed::kSparseWords> words{};
    composed::encode(layout, words.data());
    EXPECT_EQ(composed::decode(words.data()), layout);
    // A number of entries, offsets and indices, and dtypes of offsets and indices.
    for (const std::size_t broken : {7, 8, 9, 5, 6}) {
      auto other = words;
      other[broken] = broken < 7 ? static_cast<std::int64_t>(DType::kInt8) : words[broken] + 1;
      EXPECT_NE(refusal([&] { composed::decode(other.data()); }), "nothing") << broken;
    }
  }
}

}  // namespace
}  // namespace hocket
