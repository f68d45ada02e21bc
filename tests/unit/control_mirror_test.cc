// Facts about the ranks of another host, when several processes write them at one time.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "foundation/os/segment.h"
#include "membership/control/group.h"
#include "membership/control/group_layout.h"
#include "membership/control/mirror.h"
#include "membership/failure/records.h"

namespace hocket::control {
namespace {

constexpr std::uint64_t kId = 7;
constexpr int kWriters = 3;
constexpr int kTurns = 1'000'000;
// Calls at this distance share one place for their facts.
constexpr std::uint64_t kStep = kRecords;

// A host with one rank, and a group of it and of a rank elsewhere.
class MirrorTest : public ::testing::Test {
 protected:
  static constexpr HostShape kShape{.ranks = 1, .remote = 1, .stripe_bytes = 1 << 20};
  static std::shared_ptr<os::Segment> make_segment() {
    auto segment =
        std::make_shared<os::Segment>(os::Segment::create(HostControl::segment_bytes(kShape)));
    HostControl::format(*segment, kShape);
    EXPECT_EQ(::madvise(segment->data(), segment->size(), MADV_DOFORK), 0);
    return segment;
  }
  GroupEntry* enlist() {
    const int holders[] = {0, HostMemory::kNetwork};
    const std::uint64_t block = host_.memory.allocate(GroupControl::bytes(2), holders);
    GroupControl::format(host_.memory.at(block), places_);
    return host_.groups.enlist({.id = kId, .block = block, .size = 2});
  }
  GroupControl group() {
    return GroupControl(host_, host_.memory.at(entry_->block), 0, places_, nullptr);
  }
  // Starts processes that each call `write` many times, with the number of a call slightly ahead of
  // the known ones. Calls `look` here meanwhile.
  void while_all_write(const std::function<void(GroupMirror&, std::uint64_t)>& write,
                       const std::function<void()>& look) {
    std::vector<pid_t> writers;
    for (int i = 0; i < kWriters; ++i) {
      writers.push_back(::fork());
      ASSERT_GE(writers.back(), 0);
      if (writers.back() != 0) continue;
      auto mirror = GroupMirror::of(host_, *entry_);
      const GroupControl seen = group();
      for (int turn = 0; turn < kTurns; ++turn) {
        write(*mirror, seen.last_sequence(1) + static_cast<std::uint64_t>(1 + i) * kStep);
      }
      ::_exit(0);
    }
    for (const pid_t writer : writers) {
      int status = -1;
      while (::waitpid(writer, &status, WNOHANG) == 0) {
        for (int i = 0; i < 1000; ++i) look();
      }
      EXPECT_EQ(status, 0);
    }
    auto mirror = GroupMirror::of(host_, *entry_);
    write(*mirror, group().last_sequence(1) + kStep);
    look();
  }

  HostControl host_{make_segment(), 0};
  const std::vector<int> places_{0, 1};
  GroupEntry* const entry_ = enlist();
};

TEST_F(MirrorTest, WhatIsReadOfAGroupThatIsTakenOffMeanwhileIsKnownNotToBeIts) {
  const auto mirror = GroupMirror::of(host_, *entry_);
  ASSERT_TRUE(mirror);
  EXPECT_TRUE(mirror->is_listed(*entry_));
  const std::uint64_t block = entry_->block;
  entry_->id = 0;
  EXPECT_FALSE(mirror->is_listed(*entry_));
  entry_->taken = 0;
  EXPECT_EQ(host_.groups.enlist({.id = kId + 1, .block = block, .size = 2}), entry_);
  EXPECT_FALSE(mirror->is_listed(*entry_));
  EXPECT_TRUE(GroupMirror::of(host_, *entry_)->is_listed(*entry_));
}

// Memory with a number that no rank has come to.
TEST_F(MirrorTest, DamagedMemoryIsReadToAnEnd) {
  auto mirror = GroupMirror::of(host_, *entry_);
  mirror->write(MemberFact{.group = kId, .member = 1, .last = ~std::uint64_t{0}});
  const MemberFact fact = mirror->member(1);
  EXPECT_EQ(fact.last, ~std::uint64_t{0});
  EXPECT_TRUE(fact.records.empty());
}

// Each host speaks for its own members. Here member 0 is on this host, number 0, and member 1 on
// host 1. Host 2 has no member.
TEST_F(MirrorTest, NoHostSpeaksForMembersOfAnother) {
  host_.remote_hosts.set_hosts(std::vector<int>{0, 1});
  auto mirror = GroupMirror::of(host_, *entry_);
  const GroupControl seen = group();
  const auto tell = [&](const Fact& fact, int host) { mirror->write(fact, {*entry_, host}); };
  const Fact facts[] = {
      MemberFact{.group = kId, .member = 1, .last = 5},
      RefusalFact{.group = kId, .member = 1, .sequence = 5, .text = "not its own"},
      RebuildRefusalFact{
          .group = kId, .member = 1, .refusal = {.count = 3, .after = 5, .reason = "nor this"}},
      ComeFact{.group = kId, .member = 1, .how = kCame, .turn = 4}};
  for (const Fact& fact : facts) tell(fact, 2);
  for (const Fact& fact : facts) tell(fact, -1);
  EXPECT_EQ(seen.last_sequence(1), 0);
  EXPECT_FALSE(seen.refusal(1, 5));
  EXPECT_FALSE(seen.rebuild_refusal(1));
  EXPECT_FALSE(mirror->succession(nullptr).has_come(1));
  for (const Fact& fact : facts) tell(fact, 1);
  EXPECT_EQ(seen.last_sequence(1), 5);
  ASSERT_TRUE(seen.refusal(1, 5));
  EXPECT_EQ(seen.refusal(1, 5)->reason, "not its own");
  ASSERT_TRUE(seen.rebuild_refusal(1));
  EXPECT_EQ(seen.rebuild_refusal(1)->after, 5);
  EXPECT_EQ(seen.rebuild_refusal(1)->reason, "nor this");
  EXPECT_EQ(mirror->rebuild_refusal(1)->refusal.count, 3);
  EXPECT_TRUE(mirror->succession(nullptr).has_come(1));
  EXPECT_EQ(mirror->succession(nullptr).turn(1), 4);

  // no host, not even by this one's name
  tell(MemberFact{.group = kId, .member = 0, .last = 9}, 0);
  EXPECT_EQ(seen.last_sequence(0), 0);
}

// Hosts pass failures on, but a failure that a member of this host reports is ignored: it is known
// here first.
TEST_F(MirrorTest, NoHostSaysWhatMembersOfThisOneHaveFound) {
  host_.remote_hosts.set_hosts(std::vector<int>{0, 1});
  auto mirror = GroupMirror::of(host_, *entry_);
  FailureFact fact{.group = kId, .failure = {.cause = Cause::kAbortCalled, .culprit = 0}};
  for (const int reporter : {0, -1, 2}) {
    fact.failure.reporter = reporter;
    mirror->write(fact, {*entry_, 1});
    EXPECT_FALSE(mirror->failure()) << reporter;
  }
  fact.failure.reporter = 1;
  mirror->write(fact, {*entry_, 2});  // by way of another
  EXPECT_TRUE(mirror->failure());
}

// The reporter gets no processor for a while, when it has begun.
TEST_F(MirrorTest, AFailureThatIsWrittenSlowlyIsReadWhole) {
  auto& header = *reinterpret_cast<GroupHeader*>(host_.memory.at(entry_->block));
  header.failure = kFailureBeingWritten;
  std::thread reporter([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    header.cause = Cause::kLate;
    header.failure.store(kFailureWritten, std::memory_order_release);
  });
  EXPECT_EQ(group().failure().cause, Cause::kLate);
  reporter.join();
}

TEST_F(MirrorTest, HowFarARankHasComeNeverGoesBack) {
  std::uint64_t last = 0;
  std::uint64_t finished = 0;
  const GroupControl seen = group();
  while_all_write(
      [](GroupMirror& mirror, std::uint64_t call) {
        mirror.write(MemberFact{
            .group = kId, .member = 1, .last = call, .finished = finished_mark(call - 1, true)});
      },
      [&] {
        const std::uint64_t last_now = seen.last_sequence(1);
        const std::uint64_t finished_now = seen.finished_sequence(1);
        EXPECT_GE(last_now, last);
        EXPECT_GE(finished_now, finished);
        last = last_now;
        finished = finished_now;
      });
  EXPECT_GE(last, kTurns * kStep);
  EXPECT_EQ(finished, last - 1);
}

TEST_F(MirrorTest, NoRecordIsAMixtureOfTwo) {
  int looked = 0;
  const GroupControl seen = group();
  while_all_write(
      [](GroupMirror& mirror, std::uint64_t call) {
        MemberFact fact{.group = kId, .member = 1, .last = call};
        fact.records.push_back({.sequence = call, .fingerprint = call});
        fact.records.back().signature.digest = call;
        mirror.write(fact);
      },
      [&] {
        const auto record = seen.last(1);
        if (!record) return;
        EXPECT_EQ(record->fingerprint, record->sequence);
        EXPECT_EQ(record->signature.digest, record->sequence);
        ++looked;
      });
  EXPECT_GT(looked, 0);
}

// A refusal comes before the record of its call, and must not be told as one of an unknown call.
TEST_F(MirrorTest, ARefusalNamesItsCallBeforeTheRecordComes) {
  auto mirror = GroupMirror::of(host_, *entry_);
  mirror->write(RefusalFact{.group = kId,
                            .member = 1,
                            .sequence = 3,
                            .kind = engine::Kind::kHierarchicalAllReduce,
                            .text = "its op"});
  const auto refusal = failure::find_refusal(group(), 3);
  ASSERT_TRUE(refusal);
  EXPECT_FALSE(group().find(1, 3));
  EXPECT_EQ(refusal->kind, engine::Kind::kHierarchicalAllReduce);
  EXPECT_EQ(refusal->reason, "its op");
}

TEST_F(MirrorTest, NoRefusalIsAMixtureOfTwo) {
  const auto text_of = [](std::uint64_t call) {
    return std::string(Failure::kTextBytes, static_cast<char>('a' + call / kStep % 26));
  };
  int looked = 0;
  const GroupControl seen = group();
  while_all_write(
      [&](GroupMirror& mirror, std::uint64_t call) {
        mirror.write(
            RefusalFact{.group = kId, .member = 1, .sequence = call, .text = text_of(call)});
        mirror.write(MemberFact{.group = kId, .member = 1, .last = call});
      },
      [&] {
        const std::uint64_t call = seen.last_sequence(1);
        const auto refusal = seen.refusal(1, call);
        if (!refusal) return;
        EXPECT_EQ(refusal->reason, text_of(call));
        ++looked;
      });
  EXPECT_GT(looked, 0);
}

}  // namespace
}  // namespace hocket::control
