// Refused calls of rebuild, and the calls of others that they end.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "foundation/os/segment.h"
#include "membership/control/rebuild_turns.h"

namespace hocket::control {
namespace {

// A host with three ranks, all in one group.
class RebuildTurnsTest : public ::testing::Test {
 protected:
  static constexpr int kRanks = 3;

  RebuildTurnsTest() {
    const HostShape shape{.ranks = kRanks, .remote = 0, .stripe_bytes = std::size_t{1} << 20};
    auto segment = std::make_shared<os::Segment>(
        os::Segment::create_private(HostControl::segment_bytes(shape)));
    HostControl::format(*segment, shape);
    for (int rank = 0; rank < kRanks; ++rank) {
      hosts_.push_back(std::make_unique<HostControl>(segment, rank));
      hosts_.back()->arrive(rank);
    }
    const std::uint64_t block =
        hosts_[0]->memory.allocate(GroupControl::bytes(kRanks), std::array{0});
    GroupControl::format(hosts_[0]->memory.at(block), places_);
    for (int rank = 0; rank < kRanks; ++rank) {
      HostControl& host = *hosts_[static_cast<std::size_t>(rank)];
      groups_.push_back(std::make_unique<GroupControl>(host, host.memory.at(block), rank, places_));
      turns_.emplace_back(*groups_.back());
    }
  }

  RebuildTurns& turns(int rank) { return turns_[static_cast<std::size_t>(rank)]; }
  // The refusal that ends a call of `rank`: "1: no", or "nothing".
  std::string news(int rank) {
    const auto found = turns(rank).news();
    return found ? std::to_string(found->member) + ": " + found->reason : "nothing";
  }
  void call(int rank, std::uint64_t sequence) {
    groups_[static_cast<std::size_t>(rank)]->record(sequence, 1, {.kind = engine::Kind::kBarrier});
  }

 private:
  const std::vector<int> places_{0, 1, 2};
  std::vector<std::unique_ptr<HostControl>> hosts_;
  std::vector<std::unique_ptr<GroupControl>> groups_;
  std::vector<RebuildTurns> turns_;
};

TEST_F(RebuildTurnsTest, ARefusalEndsOneCallOfEachOther) {
  EXPECT_EQ(news(0), "nothing");
  turns(1).refuse("no");
  EXPECT_EQ(news(1), "nothing");  // its own
  for (const int rank : {0, 2}) {
    EXPECT_EQ(news(rank), "1: no");
    EXPECT_EQ(news(rank), "nothing");
  }
  turns(1).refuse("no again");
  EXPECT_EQ(news(0), "1: no again");
}

TEST_F(RebuildTurnsTest, RefusalsByAllAreOne) {
  for (const int rank : {0, 1, 2}) turns(rank).refuse("none of us");
  for (const int rank : {0, 1, 2}) EXPECT_EQ(news(rank), "nothing") << rank;
}

TEST_F(RebuildTurnsTest, RefusalsByTwoAreOneToTheThird) {
  turns(2).refuse("not I");
  turns(0).refuse("nor I");
  EXPECT_EQ(news(1), "0: nor I");
  for (const int rank : {0, 1, 2}) EXPECT_EQ(news(rank), "nothing") << rank;
}

// For any order of the ranks' calls, all ranks count the same number of refused calls. So they are
// in the same call afterwards.
TEST_F(RebuildTurnsTest, ManyInARowEndAsMany) {
  for (const char* const reason : {"first", "second", "third"}) turns(0).refuse(reason);
  turns(2).refuse("also the first");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(news(1), "0: third");
  for (int i = 0; i < 2; ++i) EXPECT_EQ(news(2), "0: third");
  for (const int rank : {0, 1, 2}) EXPECT_EQ(news(rank), "nothing") << rank;
  turns(1).refuse("the fourth");
  EXPECT_EQ(news(0), "1: the fourth");
  EXPECT_EQ(news(2), "1: the fourth");
}

// Rank 1 has refused a rebuild and then made another call, so it has given that rebuild up. Ranks
// that call `rebuild` later come to the next one.
TEST_F(RebuildTurnsTest, WhoHasGoneOnHasGivenItUp) {
  call(1, 7);
  turns(1).refuse("no");
  call(1, 8);
  EXPECT_EQ(news(0), "nothing");
  turns(2).refuse("I do not");
  EXPECT_EQ(news(0), "2: I do not");
  EXPECT_EQ(news(1), "2: I do not");
  turns(1).refuse("nor I");
  EXPECT_EQ(news(0), "1: nor I");
}

}  // namespace
}  // namespace hocket::control
