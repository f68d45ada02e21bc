// Facts that a host keeps about groups that are not listed there.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <vector>

#include "membership/control/kept_facts.h"
#include "membership/rendezvous/wire/wire.h"

namespace hocket::control {
namespace {

ComeFact come(int member) { return {.group = 5, .member = member}; }

Fact fact_in(const Bytes& frame) {
  const auto found = rendezvous::parse_frame(frame, kMaxFactFrame);
  EXPECT_EQ(found.state, rendezvous::Frame::State::kComplete);
  EXPECT_EQ(found.size, frame.size());
  return parse(found.payload).value_or(Beat{});
}

// The members of frames of ComeFacts, in order.
std::vector<int> members_of(const std::vector<Bytes>& frames) {
  std::vector<int> members;
  for (const Bytes& frame : frames) members.push_back(std::get<ComeFact>(fact_in(frame)).member);
  return members;
}

class KeptFactsTest : public ::testing::Test {
 protected:
  KeptFactsTest() { EXPECT_NE(memory_, MAP_FAILED); }
  ~KeptFactsTest() override { ::munmap(memory_, sizeof(KeptFacts)); }
  KeptFacts& facts() { return *static_cast<KeptFacts*>(memory_); }
  // As a process sees it that writes there.
  KeptFact& place(std::size_t index) {
    std::byte* ring = static_cast<std::byte*>(memory_) + sizeof(KeptFacts) -
                      KeptFacts::kPlaces * sizeof(KeptFact);
    return reinterpret_cast<KeptFact*>(ring)[index];
  }

 private:
  // Zeroed, and shared with processes that are forked.
  void* const memory_ =
      ::mmap(nullptr, sizeof(KeptFacts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
};

TEST_F(KeptFactsTest, AreFoundByWhatTheyAreAbout) {
  EXPECT_TRUE(facts().all().empty());
  facts().keep(3, come(30));
  facts().keep(4, come(40));
  facts().keep(3, come(31));
  EXPECT_EQ(members_of(facts().of(3)), (std::vector<int>{30, 31}));
  EXPECT_EQ(members_of(facts().of(4)), std::vector<int>{40});
  EXPECT_TRUE(facts().of(0).empty());
  EXPECT_EQ(members_of(facts().all()), (std::vector<int>{30, 40, 31}));
}

TEST_F(KeptFactsTest, WhoSaidSoIsKept) {
  facts().keep(3, come(30), 1);
  facts().keep(3, come(30), 2);  // another, of the same
  facts().keep(3, come(30), 2);
  std::vector<int> from;
  for (const auto& heard : facts().heard(3)) {
    from.push_back(heard.from);
    EXPECT_EQ(members_of({heard.frame}), std::vector<int>{30});
  }
  EXPECT_EQ(from, (std::vector<int>{1, 2}));
}

// Facts are repeated as long as a rank waits; that must not push out the others.
TEST_F(KeptFactsTest, AreKeptOnce) {
  facts().keep(3, come(0));
  for (std::size_t i = 0; i < 2 * KeptFacts::kPlaces; ++i) facts().keep(3, come(1));
  facts().keep(4, come(1));
  EXPECT_EQ(members_of(facts().all()), (std::vector<int>{0, 1, 1}));
}

TEST_F(KeptFactsTest, TheLatestPushOutTheFirst) {
  const int places = static_cast<int>(KeptFacts::kPlaces);
  for (int i = 0; i < places + 3; ++i) facts().keep(3, come(i));
  auto members = members_of(facts().of(3));
  std::sort(members.begin(), members.end());
  ASSERT_EQ(members.size(), KeptFacts::kPlaces);
  EXPECT_EQ(members.front(), 3);
  EXPECT_EQ(members.back(), places + 2);
}

TEST_F(KeptFactsTest, WhatIsTooLongIsNotKept) {
  facts().keep(3, come(0));
  RanksFact ranks;
  ranks.ranks.resize(KeptFrame::kBytes / 13 + 1);
  facts().keep(3, ranks);
  EXPECT_EQ(members_of(facts().all()), std::vector<int>{0});
}

TEST_F(KeptFactsTest, OfAMemberTheLastRecordsAreKept) {
  MemberFact member{.group = 5, .member = 1, .last = 100, .finished = 99};
  for (std::size_t i = 0; i < kRecords; ++i) member.records.push_back({.sequence = 69 + i});
  facts().keep(3, member);
  ASSERT_EQ(facts().of(3).size(), 1);
  const auto kept = std::get<MemberFact>(fact_in(facts().of(3)[0]));
  EXPECT_EQ(kept.last, 100);
  EXPECT_EQ(kept.finished, 99);
  ASSERT_EQ(kept.records.size(), 4);
  EXPECT_EQ(kept.records.front().sequence, 97);
  EXPECT_EQ(kept.records.back().sequence, 100);
}

// The longest texts that there are.
TEST_F(KeptFactsTest, RefusalsAndFailuresAreNotTooLong) {
  const std::string text(Failure::kTextBytes, 'x');
  facts().keep(3, RefusalFact{.group = 5, .member = 1, .sequence = 1, .text = text});
  facts().keep(3, FailureFact{.group = 5, .failure = {.text = text}});
  const auto frames = facts().of(3);
  ASSERT_EQ(frames.size(), 2);
  EXPECT_EQ(std::get<RefusalFact>(fact_in(frames[0])).text, text);
  EXPECT_EQ(std::get<FailureFact>(fact_in(frames[1])).failure.text, text);
}

// Somebody writes, or has ended in the middle of it.
TEST_F(KeptFactsTest, WhatIsBeingWrittenIsNotThereAndIsLeftAlone) {
  for (int i = 0; i < 3; ++i) facts().keep(3, come(i));
  place(1).number = kBeingWritten;
  EXPECT_EQ(members_of(facts().all()), (std::vector<int>{0, 2}));
  const int places = static_cast<int>(KeptFacts::kPlaces);
  for (int i = 3; i < 2 * places; ++i) facts().keep(3, come(i));
  EXPECT_EQ(place(1).number, kBeingWritten);
  EXPECT_EQ(std::get<ComeFact>(
                fact_in(Bytes(place(1).what.frame, place(1).what.frame + place(1).what.bytes)))
                .member,
            1);
  EXPECT_EQ(facts().all().size(), KeptFacts::kPlaces - 1);
}

// Data that another process has written there is checked.
TEST_F(KeptFactsTest, ADamagedLengthIsNotBelieved) {
  for (int i = 0; i < 5; ++i) facts().keep(3, come(i));
  place(1).what.bytes = KeptFrame::kBytes + 1;
  place(2).what.bytes = 0;
  place(3).what.frame[0] ^= std::byte{1};
  EXPECT_EQ(members_of(facts().all()), (std::vector<int>{0, 4}));
  facts().keep(3, come(5));
  EXPECT_EQ(members_of(facts().all()), (std::vector<int>{0, 4, 5}));
}

TEST_F(KeptFactsTest, NoFrameIsAMixtureOfTwo) {
  const auto text_of = [](int writer) { return std::string(Failure::kTextBytes, 'a' + writer); };
  std::vector<pid_t> writers;
  for (int writer = 0; writer < 3; ++writer) {
    writers.push_back(::fork());
    ASSERT_GE(writers.back(), 0);
    if (writers.back() != 0) continue;
    for (std::uint64_t i = 1; i <= 3 * KeptFacts::kPlaces; ++i) {
      facts().keep(3, RefusalFact{.group = 5, .sequence = i, .text = text_of(writer)});
    }
    ::_exit(0);
  }
  for (int round = 0; round < 100; ++round) {
    for (const Bytes& frame : facts().all()) {
      const std::string text = std::get<RefusalFact>(fact_in(frame)).text;
      EXPECT_EQ(text, std::string(Failure::kTextBytes, text[0]));
    }
  }
  for (const pid_t writer : writers) {
    int status = -1;
    EXPECT_EQ(::waitpid(writer, &status, 0), writer);
    EXPECT_EQ(status, 0);
  }
}

}  // namespace
}  // namespace hocket::control
