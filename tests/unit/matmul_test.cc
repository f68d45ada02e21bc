// Products of spread matrices on threads, against sums written out.
#include "hocket/matmul.h"

#include <gtest/gtest.h>

#include <complex>
#include <cstdlib>
#include <random>

#include "arrays/matmul/axis.h"
#include "arrays/matmul/blas.h"
#include "arrays/matmul/steps.h"
#include "hocket/group.h"
#include "matmul_reference.h"

namespace hocket {
namespace {

using matmul_reference::Complex;
using matmul_reference::Drawn;

template <typename T, typename R>
void try_one(Communicator& comm, std::mt19937& random, MatmulForm form) {
  const Drawn<T, R> drawn(comm.rank(), comm.size(), random);
  const MatmulOptions options{.dtype = dtype_of<T>, .result = dtype_of<R>, .form = form};
  Matmul product(comm, drawn.size, drawn.a, drawn.b, drawn.d, options);
  if (form != MatmulForm::kCheapest) {
    EXPECT_EQ(product.form(), form);
  }
  for (int turn = 0; turn < 3; ++turn) {  // the last one in place
    std::vector<R> out(drawn.wanted.size(), matmul_reference::as<R>(77));
    if (turn == 2) {
      out = drawn.my_c;
      product(drawn.my_a, drawn.my_b, out, out, drawn.scale);
    } else {
      product(drawn.my_a, drawn.my_b, drawn.my_c, out, drawn.scale);
    }
    ASSERT_EQ(out, drawn.wanted) << drawn.text() << " ranks " << comm.size();
  }
}

struct Case {
  int ranks;
  MatmulForm form;
  const char* library;
};

class MatmulRanks : public testing::TestWithParam<Case> {};

TEST_P(MatmulRanks, MakesWhatTheSumsSay) {
  ::setenv("HOCKET_BLAS_LIBRARY", GetParam().library, 1);
  run_threads(GetParam().ranks, [](Communicator& comm) {
    std::mt19937 random(static_cast<unsigned>(comm.size()) * 31);
    for (int i = 0; i < 10; ++i) {
      const MatmulForm form = GetParam().form;
      try_one<double, double>(comm, random, form);
      try_one<float, float>(comm, random, form);
      try_one<std::complex<float>, std::complex<float>>(comm, random, form);
      try_one<Complex, Complex>(comm, random, form);
      try_one<float16, float16>(comm, random, form);
      try_one<bfloat16, float>(comm, random, form);
      if (testing::Test::HasFatalFailure()) return;
    }
  });
  ::unsetenv("HOCKET_BLAS_LIBRARY");
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const int ranks : {1, 2, 3, 4, 5, 8}) {
    for (const char* library : {"", "none"}) {
      all.push_back({ranks, MatmulForm::kCheapest, library});
    }
    if (ranks == 2) all.push_back({ranks, MatmulForm::kCheapest, HOCKET_FAKE_BLAS "right.so"});
    all.push_back({ranks, MatmulForm::kGathered, ""});
    all.push_back({ranks, MatmulForm::kReduced, ""});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, MatmulRanks, testing::ValuesIn(cases()));

TEST(Matmul, WhatDoesNotFitIsRefusedOnAllRanks) {
  run_threads(3, [](Communicator& comm) {
    const MatmulOperand rows{.spread = Slab{0}};
    const auto refused = [&](const auto& call, const std::string& text) {
      try {
        call();
        ADD_FAILURE() << "no error: " << text;
      } catch (const InvalidArgument& error) {
        EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
      }
    };
    const bool is_last = comm.rank() == 2;
    refused([&] { Matmul(comm, {6, 6, is_last ? 5u : 6u}, rows, rows, rows); },
            "rank 2 gives m, n and k as 6, 6 and 5, and rank 0 as 6, 6 and 6");
    refused([&] { Matmul(comm, {6, 6, 6}, rows, {.spread = Slab{is_last ? 1u : 0u}}, rows); },
            "rank 2 gives another distribution of B than rank 0");
    refused(
        [&] {
          Matmul(comm,
                 {6, 6, 6},
                 rows,
                 rows,
                 rows,
                 {.dtype = is_last ? DType::kInt32 : DType::kFloat64});
        },
        "dtype is int32");
    refused(
        [&] {
          Matmul(comm, {6, 6, 6}, {.spread = BlockNonCyclic{ProcessGrid({2, 2})}}, rows, rows);
        },
        "the grid has 4 places, and there are 3 ranks");
    Matmul product(comm, {6, 6, 6}, rows, rows, rows);
    std::vector<double> x(12, 1), wrong(11, 1), d(12);
    refused([&] { product(x, is_last ? wrong : x, d); },
            "b is float64[11], expected float64[12]: 2 x 6");
    refused([&] { product(x, x, is_last ? x : d); }, "d overlaps a or b");
    refused([&] { product(x, x, d, is_last ? Complex(1, 1) : Complex(1)); }, "alpha is complex");
    product(x, x, d);
    EXPECT_EQ(d, std::vector<double>(12, 6));
  });
}

TEST(Matmul, RanksThatExecuteDifferentPlansAreTold) {
  run_threads(2, [](Communicator& comm) {
    const MatmulOperand rows{.spread = Slab{0}};
    Matmul one(comm, {4, 4, 4}, rows, rows, rows), other(comm, {4, 4, 4}, rows, rows, rows);
    std::vector<double> x(8, 1), d(8);
    const double scale = comm.rank() + 1;
    EXPECT_THROW((comm.rank() == 0 ? one : other)(x, x, d), InvalidArgument);
    EXPECT_THROW(one(x, x, d, scale), InvalidArgument);
    one(x, x, d);  // can still be used
    EXPECT_EQ(d, std::vector<double>(8, 4));
  });
}

TEST(Matmul, ChoosesTheFormThatCostsLess) {
  run_threads(4, [](Communicator& comm) {
    const auto form = [&](const MatmulSize& size, const Slab& a, const Slab& b) {
      return Matmul(comm, size, {.spread = a}, {.spread = b}, {.spread = Slab{0}}).form();
    };
    // A long inner extent that is spread already: only the small result travels.
    EXPECT_EQ(form({30, 30, 4000}, Slab{1}, Slab{0}), MatmulForm::kReduced);
    // Long rows stay where they are; a small matrix is sent to all.
    EXPECT_EQ(form({4000, 30, 30}, Slab{0}, Slab{0}), MatmulForm::kGathered);
  });
}

TEST(Matmul, AnUnknownLibraryIsRefused) {
  const MatmulOperand rows{.spread = Slab{0}};
  ::setenv("HOCKET_BLAS_LIBRARY", "/nowhere/libblas.so", 1);
  run_threads(1, [&](Communicator& comm) {
    EXPECT_THROW(Matmul(comm, {4, 4, 4}, rows, rows, rows), InvalidArgument);
  });
  ::unsetenv("HOCKET_BLAS_LIBRARY");
}

TEST(Matmul, ALibraryOf64BitIndicesIsFound) {
  ::setenv("HOCKET_BLAS_LIBRARY", HOCKET_FAKE_BLAS "right.so", 1);
  run_threads(1, [](Communicator& comm) {
    const MatmulOperand rows{.spread = Slab{0}};
    EXPECT_EQ(Matmul(comm, {4, 4, 4}, rows, rows, rows).library(), "FakeBLAS 1.2");
  });
  ::unsetenv("HOCKET_BLAS_LIBRARY");
}

TEST(Matmul, ALibraryWhoseProductsAreWrongIsRefused) {
  ::setenv("HOCKET_BLAS_LIBRARY", HOCKET_FAKE_BLAS "wrong.so", 1);
  run_threads(2, [](Communicator& comm) {
    const MatmulOperand rows{.spread = Slab{0}};
    try {
      Matmul(comm, {4, 4, 4}, rows, rows, rows);
      ADD_FAILURE() << "no error";
    } catch (const InvalidArgument& error) {
      EXPECT_NE(std::string(error.what()).find("makes wrong products on this processor"),
                std::string::npos)
          << error.what();
    }
  });
  ::unsetenv("HOCKET_BLAS_LIBRARY");
}

// The positions of the elements of a step, in both factors.
void add_elements(const matmul::InnerStep& step, std::vector<std::size_t>& places) {
  for (const matmul::InnerRun& run : step.runs) {
    for (std::size_t i = 0; i < run.length; ++i) {
      places.push_back(run.left + i);
      places.push_back(run.right + i);
    }
  }
}

TEST(MatmulSteps, CoverTheInnerExtentOnce) {
  using namespace matmul;
  for (std::size_t n = 0; n < 40; ++n) {
    const Axis left = dealt_axis(n, 3, 2, 1), right = slab_axis(n, 4),
               share = dealt_axis(n, 5, 3, 0);
    std::size_t length = 0;
    for (std::size_t place = 0; place < 3; ++place) {
      for (const InnerStep& step : steps_of(left, right, &share, place)) {
        std::size_t runs = 0;
        for (const InnerRun& run : step.runs) runs += run.length;
        EXPECT_EQ(runs, step.length);
        for (const InnerStep& part : cut_step(step, 2)) EXPECT_LE(part.length, 2u);
        // The parts, put together again, are the step.
        std::vector<std::size_t> whole, parts;
        add_elements(step, whole);
        for (const InnerStep& part : parts_of_step(step, 7)) {
          const std::size_t before = parts.size();
          add_elements(part, parts);
          EXPECT_EQ(parts.size() - before, 2 * part.length);
        }
        EXPECT_EQ(parts, whole);
        length += step.length;
      }
    }
    EXPECT_EQ(length, n);
  }
}

}  // namespace
}  // namespace hocket
