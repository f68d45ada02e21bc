// The index arithmetic of algorithms, for every size from 1 to 17 and awkward counts.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <vector>

#include "engines/algorithm/cores.h"
#include "engines/algorithm/halving.h"
#include "engines/algorithm/ranges.h"
#include "engines/algorithm/trees.h"

namespace hocket::algorithm {
namespace {

constexpr int kMostRanks = 17;
constexpr std::array<std::size_t, 12> kCounts{0, 1, 2, 3, 7, 16, 17, 64, 100, 1000, 4099, 300'000};

TEST(EvenPart, PartsFollowOneAnotherAndDifferByAtMostOne) {
  for (int n = 1; n <= kMostRanks; ++n) {
    for (const std::size_t count : kCounts) {
      std::size_t end = 0;
      for (int i = 0; i < n; ++i) {
        const Range part = even_part(count, n, i);
        EXPECT_EQ(part.first, end) << count << " in " << n << ", part " << i;
        const std::size_t least = count / static_cast<std::size_t>(n);
        EXPECT_GE(part.length, least);
        EXPECT_LE(part.length, least + 1);
        end = part.end();
      }
      EXPECT_EQ(end, count) << count << " in " << n;
    }
  }
}

TEST(EvenPart, LongerPartsComeFirst) {
  EXPECT_EQ(even_part(10, 4, 0), (Range{0, 3}));
  EXPECT_EQ(even_part(10, 4, 1), (Range{3, 3}));
  EXPECT_EQ(even_part(10, 4, 2), (Range{6, 2}));
  EXPECT_EQ(even_part(10, 4, 3), (Range{8, 2}));
}

TEST(EvenPart, TakesTheLargestCount) {
  constexpr auto kMost = std::numeric_limits<std::size_t>::max();
  EXPECT_EQ(even_part(kMost, 16, 15).end(), kMost);
}

TEST(Piece, PiecesFollowOneAnotherToTheEnd) {
  for (const std::size_t count : kCounts) {
    for (const std::size_t size : {std::size_t{1}, std::size_t{3}, std::size_t{64}, count + 1}) {
      const Range whole{5, count};
      std::size_t end = 5;
      for (std::size_t i = 0; i < pieces(count, size); ++i) {
        const Range p = piece(whole, size, i);
        EXPECT_EQ(p.first, end);
        EXPECT_GT(p.length, 0u);
        EXPECT_LE(p.length, size);
        end = p.end();
      }
      EXPECT_EQ(end, whole.end());
      EXPECT_EQ(piece(whole, size, pieces(count, size)), (Range{whole.end(), 0}));
      EXPECT_EQ(piece(whole, size, pieces(count, size) + 3), (Range{whole.end(), 0}));
      EXPECT_EQ(messages_for(count, size), count == 0 ? 1 : pieces(count, size));
    }
  }
}

TEST(WholeElements, GivesAtLeastOneAndLinesWhereTheyFit) {
  EXPECT_EQ(whole_elements(0, 4), 4u);
  EXPECT_EQ(whole_elements(3, 16), 16u);
  EXPECT_EQ(whole_elements(63, 8), 56u);
  EXPECT_EQ(whole_elements(64, 8), 64u);
  EXPECT_EQ(whole_elements(1000, 4), 960u);
  for (std::size_t bytes = 0; bytes < 300; ++bytes) {
    for (const std::size_t element : {1, 2, 4, 8, 16}) {
      EXPECT_EQ(whole_elements(bytes, element) % element, 0u);
      EXPECT_GE(whole_elements(bytes, element), element);
    }
  }
}

TEST(Wrap, StaysInRange) {
  for (int n = 1; n <= kMostRanks; ++n) {
    for (int rank = -n; rank < 3 * n; ++rank) {
      const int wrapped = wrap(rank, n);
      EXPECT_GE(wrapped, 0);
      EXPECT_LT(wrapped, n);
      EXPECT_EQ((wrapped - rank) % n, 0);
    }
  }
}

TEST(Doublings, ReachAll) {
  const std::array<int, 18> expected{0, 0, 1, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 5};
  for (int n = 1; n <= kMostRanks; ++n) {
    EXPECT_EQ(doublings(n), expected[static_cast<std::size_t>(n)]) << n;
  }
}

// Every number but the root has one parent, which counts it among its children, and hears in time.
TEST(BinomialTree, ReachesEverybodyOnce) {
  for (int n = 1; n <= kMostRanks; ++n) {
    std::vector<int> parents(static_cast<std::size_t>(n), -1);
    for (int number = 0; number < n; ++number) {
      for (int bit = tree_first_bit(number, n); bit > 0; bit /= 2) {
        if (number + bit >= n) continue;
        auto& parent = parents[static_cast<std::size_t>(number + bit)];
        EXPECT_EQ(parent, -1) << number + bit << " of " << n << " hears twice";
        parent = number;
      }
    }
    EXPECT_EQ(parents[0], -1);
    for (int number = 1; number < n; ++number) {
      EXPECT_EQ(parents[static_cast<std::size_t>(number)], tree_parent(number)) << number;
      EXPECT_LT(tree_parent(number), number);
    }
  }
}

// Every shape is a tree of all numbers, rooted at 0, no deeper than it says.
TEST(Trees, ReachEverybodyOnce) {
  for (const TreeShape shape : {TreeShape::kBinomial, TreeShape::kBinary, TreeShape::kChain}) {
    for (int n = 1; n <= kMostRanks; ++n) {
      std::vector<int> depth(static_cast<std::size_t>(n), -1);
      depth[0] = 0;
      int deepest = 0;
      for (int number = 0; number < n; ++number) {  // parents have lower numbers
        for (const int child : tree_place(shape, number, n).children) {
          EXPECT_EQ(tree_place(shape, child, n).parent, number);
          auto& level = depth[static_cast<std::size_t>(child)];
          EXPECT_EQ(level, -1) << child << " of " << n << " is reached twice";
          level = depth[static_cast<std::size_t>(number)] + 1;
          deepest = std::max(deepest, level);
        }
      }
      EXPECT_EQ(std::count(depth.begin(), depth.end(), -1), 0) << n;
      EXPECT_LE(deepest, tree_depth(shape, n)) << n;
      EXPECT_EQ(tree_place(shape, 0, n).parent, -1);
    }
  }
}

TEST(BinomialTree, SubtreesAreConsecutive) {
  for (int n = 1; n <= kMostRanks; ++n) {
    for (int number = 0; number < n; ++number) {
      int below = 1;
      for (const int child : tree_place(TreeShape::kBinomial, number, n).children) {
        below += binomial_subtree(child, n);
        EXPECT_LE(child + binomial_subtree(child, n), number + binomial_subtree(number, n));
      }
      EXPECT_EQ(binomial_subtree(number, n), below) << number << " of " << n;
    }
  }
}

// The core's numbers represent all ranks, each a separate range.
TEST(Cores, SpeakForEverybodyOnce) {
  for (int n = 1; n <= kMostRanks; ++n) {
    const int core = core_size(n);
    EXPECT_LE(core, n);
    EXPECT_GT(2 * core, n);
    EXPECT_EQ(core_first(0, n), 0);
    EXPECT_EQ(core_first(core, n), n);
    int outside = 0;
    for (int number = 0; number < core; ++number) {
      const int rank = core_rank(number, n);
      EXPECT_EQ(core_number(rank, n), number);
      EXPECT_GE(rank, core_first(number, n));
      EXPECT_LT(rank, core_first(number + 1, n));
      const int spoken_for = core_first(number + 1, n) - core_first(number, n);
      EXPECT_EQ(spoken_for, core_companion(rank, n) < 0 ? 1 : 2);
    }
    for (int rank = 0; rank < n; ++rank) {
      if (core_number(rank, n) >= 0) continue;
      ++outside;
      const int speaker = core_companion(rank, n);
      EXPECT_EQ(core_companion(speaker, n), rank);
      EXPECT_EQ(core_first(core_number(speaker, n), n), rank);
    }
    EXPECT_EQ(outside, core_excess(n));
  }
}

TEST(CoreLayout, CoversEverything) {
  for (int n = 1; n <= kMostRanks; ++n) {
    std::vector<std::size_t> counts;
    std::size_t total = 0;
    for (int rank = 0; rank < n; ++rank) {
      counts.push_back(static_cast<std::size_t>(rank * 5 % 7));
      total += counts.back();
    }
    const CoreLayout layout = CoreLayout::of_ranks(counts);
    EXPECT_EQ(layout.between(0, core_size(n)), (Range{0, total}));
    for (int number = 0; number < core_size(n); ++number) {
      std::size_t own = 0;
      for (int rank = core_first(number, n); rank < core_first(number + 1, n); ++rank) {
        own += counts[static_cast<std::size_t>(rank)];
      }
      EXPECT_EQ(layout.between(number, number + 1).length, own);
    }
    const CoreLayout even = CoreLayout::even(1001, n);
    EXPECT_EQ(even.between(0, core_size(n)), (Range{0, 1001}));
    const CoreLayout listed =
        CoreLayout::of_ranks(std::vector<std::size_t>(static_cast<std::size_t>(n), 11));
    const CoreLayout equal = CoreLayout::of_equal(11, n);
    for (int number = 0; number < core_size(n); ++number) {
      EXPECT_EQ(even.between(number, number + 1), even_part(1001, core_size(n), number));
      EXPECT_EQ(equal.between(number, number + 1), listed.between(number, number + 1));
    }
  }
}

// A rank that meets itself is idle. With an even number of ranks, none is.
TEST(Partner, MeetingsAreMutualAndEachPairMeetsOnce) {
  for (int n = 1; n <= kMostRanks; ++n) {
    for (int rank = 0; rank < n; ++rank) {
      std::set<int> met;
      for (int round = 0; round < rounds_of(n); ++round) {
        const int peer = partner(rank, round, n);
        ASSERT_TRUE(0 <= peer && peer < n);
        EXPECT_EQ(partner(peer, round, n), rank);
        met.insert(peer);
      }
      EXPECT_EQ(met.size(), static_cast<std::size_t>(rounds_of(n)));
      EXPECT_EQ(met.contains(rank), n % 2 == 1);
    }
  }
}

TEST(Parts, EqualSplitAndListed) {
  EXPECT_EQ(Parts::equal(24).of(0), (Range{0, 24}));
  EXPECT_EQ(Parts::equal(24).of(3), (Range{72, 24}));
  EXPECT_EQ(Parts::equal(0).of(3), (Range{0, 0}));
  EXPECT_EQ(Parts::split(10, 8, 4).of(1), (Range{24, 24}));
  EXPECT_EQ(Parts::split(10, 8, 4).of(3), (Range{64, 16}));
  EXPECT_EQ(longest(Parts::split(10, 8, 4), 4), 24u);
  const std::array<std::size_t, 3> bytes{5, 0, 9};
  const std::array<std::size_t, 3> offsets{9, 14, 0};
  const Parts listed = Parts::listed({bytes.data(), offsets.data()});
  EXPECT_EQ(listed.of(0), (Range{9, 5}));
  EXPECT_EQ(listed.of(1), (Range{14, 0}));
  EXPECT_EQ(listed.of(2), (Range{0, 9}));
  EXPECT_EQ(longest(listed, 3), 9u);
}

TEST(Parts, SplitCoversEverything) {
  for (int n = 1; n <= kMostRanks; ++n) {
    for (const std::size_t count : kCounts) {
      const Parts parts = Parts::split(count, 4, n);
      std::size_t end = 0;
      for (int i = 0; i < n; ++i) {
        EXPECT_EQ(parts.of(i).first, end);
        end = parts.of(i).end();
      }
      EXPECT_EQ(end, 4 * count);
    }
  }
}

}  // namespace
}  // namespace hocket::algorithm
