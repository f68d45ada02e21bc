// Facts between hosts survive encoding, and no other bytes are taken for a fact.
#include <gtest/gtest.h>

#include <random>

#include "membership/control/facts.h"
#include "membership/control/succession.h"
#include "membership/rendezvous/wire/wire.h"

namespace hocket::control {
namespace {

Bytes payload_of(const Fact& fact) {
  const Bytes frame = encode(fact);
  const auto found = rendezvous::parse_frame(frame, kMaxFactFrame);
  EXPECT_EQ(found.state, rendezvous::Frame::State::kComplete);
  return Bytes(found.payload.begin(), found.payload.end());
}

engine::Signature signature(int salt) {
  return {.kind = engine::Kind::kAllReduce,
          .dtype = DType::kFloat64,
          .op = ReduceOp::kMax,
          .root = salt,
          .count = std::uint64_t{1} << (salt % 60),
          .digest = 77,
          .symmetric = 1};
}

std::vector<Fact> facts() {
  RanksFact ranks;
  for (int i = 0; i < 5; ++i) {
    ranks.ranks.push_back({.world_rank = 7 * i,
                           .state = static_cast<RankState>(i),
                           .pid = 1000 + i,
                           .end = i % 2 == 0 ? std::optional<int>() : std::optional<int>(9),
                           .reason = {}});
    if (i == 2) ranks.ranks.back().reason = {.follows_loss = false, .text = "raised KeyError: 7"};
    if (i == 3) ranks.ranks.back().reason = {.follows_loss = true, .text = std::string(200, 'y')};
  }
  MemberFact member{.group = 0xabcdef, .member = 3, .last = 40, .finished = 39};
  for (std::size_t i = 0; i < kRecords; ++i) {
    member.records.push_back({.sequence = 25 + i,
                              .fingerprint = ~i,
                              .signature = signature(static_cast<int>(i)),
                              .refused = i == 4});
  }
  FailureFact failure{.group = 5, .failure = {}};
  failure.failure = {.cause = Cause::kPartsDiffer,
                     .reporter = 2,
                     .culprit = -1,
                     .sequence = 8,
                     .missing = 0b101,
                     .signature = signature(1),
                     .other = signature(2),
                     .text = "of the first"};
  return {Beat{},
          Question{.group = ~std::uint64_t{0}},
          ranks,
          member,
          RefusalFact{.group = 9,
                      .member = 1,
                      .sequence = 4,
                      .kind = engine::Kind::kBroadcast,
                      .text = std::string(Failure::kTextBytes, 'x')},
          failure,
          ComeFact{.group = 3, .member = 2, .how = kCame | kAlone, .turn = 7},
          VoteFact{.group = 4,
                   .kind = VoteFact::Kind::kPromise,
                   .ballot = (std::uint64_t{5} << 16) + 2,
                   .other = 77,
                   .members = {true, false, true, true, false, false, true, true, true},
                   .lost = {false, true}},
          RebuildRefusalFact{.group = 6,
                             .member = 3,
                             .refusal = {.count = 2,
                                         .after = ~std::uint64_t{1},
                                         .reason = std::string(Failure::kTextBytes, 'y')}}};
}

TEST(Mirror, FactsSurviveTheWay) {
  for (const Fact& fact : facts()) {
    const Bytes payload = payload_of(fact);
    const auto parsed = parse(payload);
    ASSERT_TRUE(parsed.has_value()) << "fact " << fact.index();
    EXPECT_EQ(parsed->index(), fact.index());
    EXPECT_EQ(payload_of(*parsed), payload) << "fact " << fact.index();
  }
}

TEST(Mirror, HalfFactsAndMoreThanFactsAreNone) {
  for (const Fact& fact : facts()) {
    Bytes payload = payload_of(fact);
    for (std::size_t length = 0; length < payload.size(); ++length) {
      EXPECT_FALSE(parse(std::span(payload).first(length)).has_value())
          << "fact " << fact.index() << ", " << length << " bytes";
    }
    payload.push_back(std::byte{0});
    EXPECT_FALSE(parse(payload).has_value()) << "fact " << fact.index();
  }
}

// Damaged bytes either are refused, or are read as a fact whose encoding is read as one of the same
// kind.
TEST(Mirror, NoiseIsTakenForNothingThatCannotBeSaid) {
  std::mt19937 random(11);
  const auto all = facts();
  for (int i = 0; i < 200'000; ++i) {
    Bytes payload = payload_of(all[random() % all.size()]);
    for (int change = static_cast<int>(random() % 4); change >= 0; --change) {
      payload[random() % payload.size()] = static_cast<std::byte>(random());
    }
    const auto parsed = parse(payload);
    if (!parsed) continue;
    const auto again = parse(payload_of(*parsed));
    ASSERT_TRUE(again.has_value());
    EXPECT_EQ(again->index(), parsed->index());
    if (const auto* member = std::get_if<MemberFact>(&*parsed)) {
      EXPECT_LE(member->records.size(), kRecords);
    }
  }
}

}  // namespace
}  // namespace hocket::control
