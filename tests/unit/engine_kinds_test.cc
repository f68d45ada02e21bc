// The answers of the table of kinds, compared with the known properties of each collective.
#include <gtest/gtest.h>

#include <set>

#include "engine/call.h"

namespace hocket::engine {
namespace {

TEST(Kinds, OnlyTheTwoSymmetricAllocationsShareAName) {
  std::set<std::string_view> names;
  for (const KindRow& row : kKinds) {
    EXPECT_FALSE(row.name.empty());
    if (row.kind == Kind::kNvshmemAllocate) continue;
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
  }
}

TEST(Kinds, AVFormIsItsRegularFormWithListedParts) {
  for (const KindRow& row : kKinds) {
    const KindRow& regular = row_of(row.regular);
    EXPECT_EQ(regular_of(regular.kind), regular.kind);
    if (!is_listed(row.kind)) continue;
    EXPECT_EQ(row.name, std::string(regular.name) + "_v");
    EXPECT_EQ(listed_of(regular.kind), row.kind);
    EXPECT_EQ(row.flow, regular.flow);
    EXPECT_EQ(row.gives, regular.gives);
    EXPECT_EQ(row.takes, regular.takes);
  }
  EXPECT_EQ(listed_of(Kind::kAllReduce), Kind::kAllReduce);  // it has none
}

TEST(Kinds, WhatARankGivesAndTakes) {
  EXPECT_EQ(given(Kind::kScatter, true), Has::kAll);
  EXPECT_EQ(given(Kind::kScatter, false), Has::kNothing);
  EXPECT_EQ(taken(Kind::kScatter, false), Has::kShare);
  EXPECT_EQ(taken(Kind::kGatherV, true), Has::kAll);
  EXPECT_EQ(taken(Kind::kGatherV, false), Has::kNothing);
  EXPECT_EQ(given(Kind::kReduce, false), Has::kCount);
  EXPECT_EQ(taken(Kind::kAllReduce, false), Has::kCount);
  EXPECT_EQ(given(Kind::kBarrier, true), Has::kNothing);
  EXPECT_EQ(given(Kind::kExscan, true), Has::kCount);
  EXPECT_EQ(taken(Kind::kExscan, true), Has::kNothing);
  EXPECT_EQ(taken(Kind::kExscan, false), Has::kCount);
  EXPECT_EQ(taken(Kind::kScan, true), Has::kCount);
}

TEST(Kinds, WhoseArraysAreCombinedForARank) {
  EXPECT_EQ(KindSet::where(is_prefix), (KindSet{Kind::kScan, Kind::kExscan}));
  EXPECT_EQ(combined(Kind::kAllReduce, 2, 5), 5);
  EXPECT_EQ(combined(Kind::kScan, 0, 5), 1);
  EXPECT_EQ(combined(Kind::kScan, 4, 5), 5);
  EXPECT_EQ(combined(Kind::kExscan, 0, 5), 0);
  EXPECT_EQ(combined(Kind::kExscan, 4, 5), 4);
}

TEST(Kinds, SetsThatAreAskedFor) {
  EXPECT_EQ(KindSet::where(is_rooted),
            (KindSet{Kind::kBroadcast,
                     Kind::kReduce,
                     Kind::kGather,
                     Kind::kScatter,
                     Kind::kGatherV,
                     Kind::kScatterV}));
  EXPECT_EQ(KindSet::where(is_reduction),
            (KindSet{Kind::kReduce,
                     Kind::kAllReduce,
                     Kind::kScan,
                     Kind::kExscan,
                     Kind::kReduceScatter,
                     Kind::kReduceScatterV}));
  EXPECT_EQ(KindSet::where(counts_parts), (KindSet{Kind::kReduceScatterV, Kind::kAllGatherV}));
  EXPECT_EQ(KindSet::where(swaps_parts), (KindSet{Kind::kAllToAll, Kind::kAllToAllV}));
  EXPECT_EQ(KindSet::where(takes_whole_arrays),
            (KindSet{Kind::kBroadcast,
                     Kind::kReduce,
                     Kind::kAllReduce,
                     Kind::kScan,
                     Kind::kExscan,
                     Kind::kSend,
                     Kind::kRecv}));
  EXPECT_EQ(KindSet::where(all_take_alike),
            (KindSet{Kind::kBroadcast, Kind::kAllReduce, Kind::kAllGather, Kind::kAllToAll}));
}

TEST(Kinds, ATableHasWhatItLists) {
  constexpr KindTable<int> table{{Kind::kReduce, 3}, {Kind::kSend, 4}};
  EXPECT_EQ(table.kinds(), (KindSet{Kind::kReduce, Kind::kSend}));
  EXPECT_EQ(table[Kind::kSend], 4);
  EXPECT_FALSE(table.kinds().has(Kind::kAllReduce));
}

TEST(Kinds, DescribedAsTheyAreCalled) {
  EXPECT_EQ(describe({.kind = Kind::kSymmetricFree, .memory = MemoryKind::kCuda, .digest = 5}),
            "symmetric.free");
  EXPECT_EQ(describe({.kind = Kind::kNvshmemAllocate,
                      .dtype = DType::kInt32,
                      .memory = MemoryKind::kCuda,
                      .count = 3}),
            "symmetric.empty int32[3] on GPUs, NVSHMEM's heap");
  EXPECT_EQ(describe({.kind = Kind::kAllReduce,
                      .dtype = DType::kFloat32,
                      .count = 4,
                      .digest = digest_of(MemoryOrder::kFortran)}),
            "all_reduce sum float32[4] in Fortran order");
  EXPECT_EQ(describe({.kind = Kind::kBarrier}), "barrier");
}

}  // namespace
}  // namespace hocket::engine
