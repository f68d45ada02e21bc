// Positions of elements, and moving them from one distribution to another.
#include "hocket/distribution.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "hocket/context.h"
#include "hocket/group.h"
#include "hocket/redistribute.h"

namespace hocket {
namespace {

template <typename F>
std::string refusal(F&& f) {
  try {
    f();
  } catch (const InvalidArgument& error) {
    return error.what();
  }
  return "";
}

// Every index of a box, the last axis fastest.
std::vector<Extents> indices(const Box& box) {
  std::vector<Extents> all;
  if (box.is_empty()) return all;
  Extents at = box.lower();
  while (true) {
    all.push_back(at);
    std::size_t i = at.size();
    while (i > 0 && ++at[i - 1] == box.upper()[i - 1]) {
      --i;
      at[i] = box.lower()[i];
    }
    if (i == 0) return all;
  }
}

Box whole(const Extents& shape) { return {Extents(shape.size()), shape}; }

TEST(Distribution, SlabsTileTheArray) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (const std::size_t n : {0u, 1u, 7u, 9u, 100u}) {
      std::size_t at = 0, longest = 0;
      for (int r = 0; r < ranks; ++r) {
        const Box box = Slab{1}.box({3, n, 2}, r, ranks);
        EXPECT_EQ(box.lower(), (Extents{0, at, 0}));
        const std::size_t length = box.shape()[1];
        EXPECT_EQ(length,
                  n / static_cast<std::size_t>(ranks) +
                      (static_cast<std::size_t>(r) < n % static_cast<std::size_t>(ranks)));
        longest = std::max(longest, length);
        at += length;
      }
      EXPECT_EQ(at, n);
    }
  }
  EXPECT_EQ(refusal([] { Slab{2}.box({3, 4}, 0, 1); }), "axis is 2, and the array has 2 axes");
  EXPECT_EQ(refusal([] { Slab{0}.box({3, 4}, 4, 4); }), "rank is 4, expected 0 to 3");
}

TEST(Distribution, Boxes) {
  const Box a({0, 1}, {4, 5}), b({2, 3}, {9, 4}), c({5, 0}, {6, 9});
  EXPECT_EQ(intersection(a, b), Box({2, 3}, {4, 4}));
  EXPECT_TRUE(intersection(a, c).is_empty());
  EXPECT_EQ(hull(a, b), Box({0, 1}, {9, 5}));
  EXPECT_EQ(hull(Box(), b), b);
  EXPECT_EQ(to_string(b), "[2, 9) x [3, 4)");
  EXPECT_EQ(refusal([] { Box({2}, {1}); }), "lower (2) is above upper (1) on axis 0");
}

TEST(Distribution, GridsPlaceRanks) {
  const ProcessGrid rows({2, 3}), columns({2, 3}, ProcessGrid::Layout::kColumnMajor);
  EXPECT_EQ(rows.place_of(4), (Extents{1, 1}));
  EXPECT_EQ(columns.place_of(4), (Extents{0, 2}));
  EXPECT_EQ(columns.place_of(3), (Extents{1, 1}));
  const ProcessGrid own({2, 2}, {3, 1, 0, 2});
  for (const ProcessGrid& grid : {rows, columns, own}) {
    for (int r = 0; r < grid.size(); ++r) EXPECT_EQ(grid.rank_at(grid.place_of(r)), r);
  }
  EXPECT_EQ(refusal([] { ProcessGrid({2}, {0, 0}); }),
            "ranks is (0, 0), expected each of 0 to 1 once");
  EXPECT_EQ(refusal([] { ProcessGrid({2, 0}); }), "a process grid of shape (2, 0) has no places");
  EXPECT_EQ(refusal([] { ProcessGrid({65536, 32768}); }),
            "a process grid of shape (65536, 32768) has more places than ranks can be");
}

TEST(Distribution, BlocksAreDealtOutInTurn) {
  for (const auto layout : {ProcessGrid::Layout::kRowMajor, ProcessGrid::Layout::kColumnMajor}) {
    const ProcessGrid grid({2, 3}, layout);
    for (const Extents& first : {Extents{0, 0}, Extents{1, 2}}) {
      for (const Extents& block : {Extents{1, 1}, Extents{2, 3}, Extents{5, 2}}) {
        for (const Extents& global : {Extents{1, 1}, Extents{7, 11}, Extents{12, 12}}) {
          const BlockCyclic blocks(grid, block, first);
          std::set<Extents> seen;
          for (int r = 0; r < 6; ++r) {
            const Extents shape = blocks.shape(global, r);
            for (const Extents& local : indices(whole(shape))) {
              const Extents index = blocks.global_index(r, local);
              EXPECT_LT(index[0], global[0]);
              EXPECT_LT(index[1], global[1]);
              EXPECT_EQ(blocks.owner(index), r);
              EXPECT_TRUE(seen.insert(index).second);
            }
          }
          EXPECT_EQ(seen.size(), count_of(global));
        }
      }
    }
  }
  const BlockNonCyclic blocks{ProcessGrid({2, 2})};
  EXPECT_EQ(blocks.box({5, 4}, 2), Box({3, 0}, {5, 2}));
  EXPECT_EQ(blocks.bound({5, 4}).shape({5, 4}, 2), (Extents{2, 2}));
  EXPECT_EQ(refusal([] { BlockCyclic(ProcessGrid({2}), {0}); }),
            "block is (0), expected at least 1 on each axis");
}

// --- Redistribution -----------------------------------------------------------------------------

// The value of an element of the whole array: differs for each.
double value_at(const Extents& index) {
  double value = 1;
  for (const std::size_t i : index) value = value * 101 + static_cast<double>(i);
  return value;
}

std::vector<double> part(const Box& box, MemoryOrder order) {
  std::vector<double> values;
  if (order == MemoryOrder::kC) {
    for (const Extents& index : indices(box)) values.push_back(value_at(index));
    return values;
  }
  const Box turned(Extents(box.lower().rbegin(), box.lower().rend()),
                   Extents(box.upper().rbegin(), box.upper().rend()));
  for (const Extents& index : indices(turned)) {
    values.push_back(value_at({index.rbegin(), index.rend()}));
  }
  return values;
}

class Redistributions : public testing::TestWithParam<int> {};

TEST_P(Redistributions, MoveSlabsAndBlocks) {
  const int n = GetParam();
  run_threads(n, [n](Communicator& comm) {
    for (const Extents& shape : {Extents{13}, Extents{7, 10}, Extents{8, 4}, Extents{5, 6, 7}}) {
      for (const MemoryOrder order : {MemoryOrder::kC, MemoryOrder::kFortran}) {
        std::vector<Box> kinds;
        for (std::size_t axis = 0; axis < shape.size(); ++axis) {
          kinds.push_back(Slab{axis}.box(shape, comm.rank(), n));
        }
        Extents places(shape.size(), 1);
        places.back() = static_cast<std::size_t>(n);
        kinds.push_back(BlockNonCyclic{ProcessGrid(places)}.box(shape, comm.rank()));
        // All on the last rank.
        kinds.push_back(comm.rank() == n - 1 ? whole(shape)
                                             : Box(Extents(shape.size()), Extents(shape.size())));
        for (const Box& from : kinds) {
          for (const Box& to : kinds) {
            std::vector<double> out(to.count(), -1);
            Redistribution plan(comm, from, to, {.order = order});
            EXPECT_EQ(plan.whole(), whole(shape));
            for (int again = 0; again < 2; ++again) {
              std::fill(out.begin(), out.end(), -1);
              plan(part(from, order), out);
              ASSERT_EQ(out, part(to, order)) << to_string(from) << " to " << to_string(to);
            }
          }
        }
      }
    }
  });
}

TEST_P(Redistributions, WantMoreThanOnceOrNotAll) {
  const int n = GetParam();
  run_threads(n, [n](Communicator& comm) {
    const Extents shape{4, 9};
    const Box from = Slab{1}.box(shape, comm.rank(), n);
    // All ranks want the same box, and no rank the first row.
    const Box to({1, 2}, {4, 8});
    std::vector<double> out(to.count());
    redistribute(comm, part(from, MemoryOrder::kC), from, out, to);
    EXPECT_EQ(out, part(to, MemoryOrder::kC));
  });
}

INSTANTIATE_TEST_SUITE_P(Sizes, Redistributions, testing::Values(1, 2, 3, 4));

TEST(Redistributions, WhatIsWrongIsTheSameForAll) {
  std::mutex mutex;
  std::map<std::string, int> errors;
  const auto note = [&](const std::string& what) {
    const std::lock_guard lock(mutex);
    ++errors[what];
  };
  run_threads(2, [&](Communicator& comm) {
    const Box mine = Slab{0}.box({4, 4}, comm.rank(), 2), all = whole({4, 4});
    const auto order = comm.rank() == 0 ? MemoryOrder::kC : MemoryOrder::kFortran;
    note(refusal([&] { Redistribution(comm, all, mine); }));
    note(refusal([&] { Redistribution(comm, mine, mine, {.order = order}); }));
    note(refusal([&] { Redistribution(comm, mine, whole({5, 4})); }));
    const Box half = comm.rank() == 0 ? Box({0, 0}, {2, 2}) : Box({2, 2}, {4, 4});
    note(refusal([&] { Redistribution(comm, half, half); }));
    const Box flat = comm.rank() == 0 ? whole({4}) : mine;
    note(refusal([&] { Redistribution(comm, flat, flat); }));
    const Box endless({0, 0}, {SIZE_MAX / 2 + 1, 2});  // 0 elements, it seems
    EXPECT_NE(refusal([&] { Redistribution(comm, endless, endless); }).find("can be counted"),
              std::string::npos);
    Redistribution fine(comm, mine, mine);
    std::vector<double> in(8), out(comm.rank() == 0 ? 8 : 7);
    EXPECT_NE(refusal([&] { fine(in, out); }), "");
    out.resize(8, -1);
    fine(in, out);
    EXPECT_EQ(out, in);
  });
  EXPECT_EQ(errors,
            (std::map<std::string, int>{
                {"ranks 0 and 1 both hold [0, 4) x [0, 4)", 2},
                {"rank 1 has the other memory order than rank 0", 2},
                {"the boxes that are wanted reach over [0, 5) x [0, 4), and held is "
                 "[0, 4) x [0, 4)",
                 2},
                {"the boxes that are held have 8 elements, and [0, 4) x [0, 4) has 16", 2},
                {"rank 1 has boxes of 2 axes, and rank 0 of 1", 2}}));
}

// --- The context --------------------------------------------------------------------------------

TEST(Contexts, OneAtATime) {
  EXPECT_EQ(Context::current(), nullptr);
  for (int round = 0; round < 2; ++round) {
    const auto context = Context::initialize({.device = 3});
    EXPECT_EQ(Context::current(), context);
    EXPECT_EQ(context->device(), 3);
    EXPECT_EQ(context->size(), 1);
    EXPECT_EQ(refusal([] { Context::initialize(); }),
              "the context has been initialized already; finalize it first");
    Context::finalize();
    Context::finalize();
    EXPECT_EQ(Context::current(), nullptr);
  }
}

}  // namespace
}  // namespace hocket
