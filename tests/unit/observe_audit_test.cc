// Audits: written by calls, read back, compared; each single bit is found in its call, rank and
// block; and files that are none.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "calls/call/auditing.h"
#include "hocket/audit.h"
#include "hocket/error.h"

namespace hocket {
namespace {

using call::Arrays;
using call::Auditing;
using engine::Kind;
using observe::AuditFile;

class Audit : public testing::Test {
 protected:
  Audit() {
    std::string pattern = testing::TempDir() + "hocket-audit-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~Audit() override { std::filesystem::remove_all(folder_); }

  static call::Membership member(int rank, int size) {
    call::Membership membership;
    membership.name = "world";
    membership.rank = rank;
    for (int r = 0; r < size; ++r) {
      membership.world_ranks.push_back(r);
      membership.host_ranks.push_back(r);
    }
    return membership;
  }

  std::vector<std::byte> contents() const {
    std::ifstream in(folder_ + "/rank-0.audit", std::ios::binary);
    std::string text(std::istreambuf_iterator<char>(in), {});
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    return {bytes, bytes + text.size()};
  }

  std::string folder_;
};

// An all_reduce of `in`, of which `out` comes.
template <typename T>
void all_reduce(Auditing& auditing,
                std::uint64_t sequence,
                const std::vector<T>& in,
                const std::vector<T>& out) {
  std::vector<T> result(out.size());
  engine::Call call;
  call.signature = {.kind = Kind::kAllReduce, .dtype = dtype_of<T>, .count = in.size()};
  call.sequence = sequence;
  call.in = in.data();
  call.out = result.data();
  auditing.begin(call, call.signature, Arrays::kHere);
  result = out;
  call.out = result.data();
  auditing.end(false);
}

JobAudit job_of(RankAudit rank) {
  JobAudit job;
  job.ranks.push_back(std::move(rank));
  return job;
}

TEST_F(Audit, TenThousandSingleBitsAreNamed) {
  constexpr std::size_t kElements = 2000;
  std::vector<float> in(kElements);
  std::iota(in.begin(), in.end(), 1.0F);
  std::vector<float> out(kElements);
  std::iota(out.begin(), out.end(), 5.0F);
  std::vector<std::size_t> bits;
  {
    const auto file = AuditFile::make(folder_, {.rank = 0, .size = 1});
    Auditing auditing(file, member(0, 1));
    all_reduce(auditing, 1, in, out);
    std::mt19937_64 random(5);
    for (int i = 0; i < 10'000; ++i) {
      const std::size_t bit = random() % (2 * kElements * 32);
      bits.push_back(bit);
      std::vector<float>& array = bit < kElements * 32 ? in : out;
      auto* bytes = reinterpret_cast<unsigned char*>(array.data());
      const std::size_t at = bit % (kElements * 32);
      bytes[at / 8] ^= static_cast<unsigned char>(1U << (at % 8));
      all_reduce(auditing, bits.size() + 1, in, out);
      bytes[at / 8] ^= static_cast<unsigned char>(1U << (at % 8));
    }
  }
  const RankAudit all = parse_rank_audit(contents());
  ASSERT_EQ(all.calls.size(), 10'001U);
  RankAudit good = all;
  good.calls.resize(1);
  RankAudit bad = good;
  for (std::size_t i = 0; i < bits.size(); ++i) {
    bad.calls[0] = all.calls[i + 1];
    bad.calls[0].sequence = 1;
    const auto found = compare_audits(job_of(good), job_of(bad)).first;
    ASSERT_TRUE(found) << "bit " << bits[i];
    const bool given = bits[i] < kElements * 32;
    const std::size_t element = bits[i] % (kElements * 32) / 32;
    EXPECT_EQ(found->what, given ? AuditDifference::What::kGiven : AuditDifference::What::kTaken);
    EXPECT_EQ(found->call.sequence, 1U);
    EXPECT_EQ(found->rank, 0);
    EXPECT_EQ(found->blocks, 1U);
    EXPECT_LE(found->block.begin, element);
    EXPECT_GT(found->block.end, element);
    EXPECT_LE(found->block.end - found->block.begin, 256U);
  }
  EXPECT_FALSE(compare_audits(job_of(good), job_of(good)).first);
}

TEST_F(Audit, PartsOfTheirOwnSizesAndPlaces) {
  std::vector<double> in = {1, 2, 3, 4, 5, 6, 7, 8};
  // Parts of 3, 0 and 2 elements, with others between that are no part of the call.
  const std::vector<std::size_t> bytes = {24, 0, 16};
  const std::vector<std::size_t> offsets = {0, 24, 40};
  std::vector<double> out = {9, std::numeric_limits<double>::infinity()};
  {
    Auditing auditing(AuditFile::make(folder_, {.rank = 0, .size = 3}), member(0, 3));
    engine::Call call;
    call.signature = {.kind = Kind::kReduceScatterV, .dtype = DType::kFloat64, .count = 5};
    call.in = in.data();
    call.in_parts = {.bytes = bytes.data(), .offsets = offsets.data()};
    call.out = out.data();
    call.own_bytes = 16;
    for (const std::size_t changed : {4U, 5U}) {  // no part, the last part
      ++call.sequence;
      auditing.begin(call, call.signature, Arrays::kHere);
      auditing.end(false);
      in[changed] = -1;
    }
    ++call.sequence;
    auditing.begin(call, call.signature, Arrays::kHere);
    auditing.end(true);  // the output of a failed call is not audited
  }
  const RankAudit audit = parse_rank_audit(contents());
  ASSERT_EQ(audit.calls.size(), 3U);
  EXPECT_EQ(audit.calls[0].in.parts, (std::vector<std::size_t>{24, 0, 16}));
  EXPECT_EQ(audit.calls[0].in.blocks.size(), 2U);
  EXPECT_EQ(audit.calls[0].in.blocks, audit.calls[1].in.blocks);
  EXPECT_EQ(audit.calls[0].out.non_finite, 1U);
  EXPECT_FALSE(audit.calls[2].out.digested);
  EXPECT_FALSE(audit.calls[2].ended);
  RankAudit a = audit;
  RankAudit b = audit;
  a.calls = {audit.calls[1]};
  b.calls = {audit.calls[2]};
  b.calls[0].sequence = a.calls[0].sequence;
  const auto found = compare_audits(job_of(a), job_of(b)).first;
  ASSERT_TRUE(found);
  EXPECT_EQ(found->block.part, 2);
  EXPECT_EQ(found->block.begin, 0U);
  EXPECT_EQ(found->block.end, 2U);
  const auto infinite = first_non_finite(job_of(audit));
  ASSERT_TRUE(infinite);
  EXPECT_EQ(infinite->call.sequence, 1U);
  EXPECT_FALSE(infinite->given);
}

// Within a group the calls' numbers give the order, not the clocks. Within a call, the input comes
// before the output.
TEST_F(Audit, TheFirstOfSeveralRanks) {
  const auto call = [](std::uint64_t sequence, std::int64_t time, std::uint64_t in) {
    AuditedCall made{.name = "all_reduce", .sequence = sequence, .time = time, .ended = true};
    made.in = made.out = {.digested = true, .bytes = 8, .block_bytes = 1024, .blocks = {{in, in}}};
    made.dtype = DType::kFloat64;
    return made;
  };
  JobAudit a;
  for (int r = 0; r < 3; ++r) {
    a.ranks.push_back({.rank = r, .size = 3, .groups = {{"world", 3, r}}});
    for (std::uint64_t i = 1; i < 5; ++i) a.ranks.back().calls.push_back(call(i, 100, 7));
  }
  JobAudit b = a;
  b.ranks[0].calls[2].in.blocks[0].sums = 1;
  b.ranks[1].calls[1].out.blocks[0].order = 1;
  b.ranks[2].calls[1].in.blocks[0].sums = 2;
  b.ranks[0].calls[1].out.blocks[0].sums = 2;
  a.ranks[2].calls[1].time = 1000;
  const auto found = compare_audits(a, b).first;
  ASSERT_TRUE(found);
  EXPECT_EQ(found->what, AuditDifference::What::kGiven);
  EXPECT_EQ(found->rank, 2);
  EXPECT_EQ(found->call.sequence, 2U);
  EXPECT_EQ(found->given_by, std::vector<int>{2});
  EXPECT_EQ(found->taken_by, (std::vector<int>{0, 1}));
  // A message that comes at the same tick as it was sent, by a clock that is a little behind.
  JobAudit sent = a;
  for (auto& rank : sent.ranks) {
    for (auto& each : rank.calls) each.sequence = 0;
    rank.calls.resize(1);
    rank.calls[0].name = rank.rank == 1 ? "send" : "recv";
  }
  sent.ranks[0].calls[0].time -= 50;
  JobAudit other = sent;
  other.ranks[0].calls[0].out.blocks[0].sums = 1;
  other.ranks[1].calls[0].in.blocks[0].sums = 1;
  const auto message = compare_audits(sent, other).first;
  ASSERT_TRUE(message);
  EXPECT_EQ(message->what, AuditDifference::What::kGiven);
  EXPECT_EQ(message->rank, 1);
  b = a;
  b.ranks[1].calls.pop_back();
  const auto missing = compare_audits(a, b).first;
  ASSERT_TRUE(missing);
  EXPECT_EQ(missing->what, AuditDifference::What::kMissing);
  EXPECT_EQ(missing->rank, 1);
  b.ranks.pop_back();
  EXPECT_THROW(compare_audits(a, b), InvalidArgument);
}

// Data that calls share is stored once, in any order of calls: a small call takes one cache line.
TEST_F(Audit, SmallCallsTakeALineEach) {
  constexpr std::size_t kCalls = 1000;
  const std::vector<float> array = {1, 2};
  const std::vector<double> message = {3};
  {
    Auditing auditing(AuditFile::make(folder_, {.rank = 0, .size = 2}), member(0, 2));
    for (std::uint64_t i = 1; i <= kCalls; ++i) {
      all_reduce(auditing, i, array, array);
      auditing.sent({.peer = 1, .tag = 5 + i % 2}, message);
      auditing.received({.peer = 1, .tag = 5}, message);
    }
  }
  constexpr std::size_t kGroups = 1;
  constexpr std::size_t kShapes = 4;  // of two lines
  EXPECT_EQ(
      contents().size(),
      observe::kAuditHeaderBytes + observe::kAuditLine * (kGroups + 2 * kShapes + 3 * kCalls));
  const RankAudit audit = parse_rank_audit(contents());
  ASSERT_EQ(audit.calls.size(), 3 * kCalls);
  for (std::size_t i = 0; i < kCalls; ++i) {
    EXPECT_EQ(audit.calls[3 * i].sequence, i + 1);
    EXPECT_EQ(audit.calls[3 * i].name, "all_reduce");
    EXPECT_EQ(audit.calls[3 * i + 1].name, "send");
    EXPECT_EQ(audit.calls[3 * i + 1].tag, (i + 1) % 2 + 5);
    EXPECT_EQ(audit.calls[3 * i + 2].name, "recv");
    EXPECT_EQ(audit.calls[3 * i + 2].out.blocks, audit.calls[3 * i + 1].in.blocks);
  }
}

// More kinds of calls than are remembered, with infinities that each has to report.
TEST_F(Audit, ManyShapesInTurns) {
  {
    Auditing auditing(AuditFile::make(folder_, {.rank = 0, .size = 1}), member(0, 1));
    for (std::uint64_t i = 0; i < 60; ++i) {
      std::vector<float> array(1 + i % 20, 1.0F);
      if (i % 7 == 3) array.back() = std::numeric_limits<float>::infinity();
      all_reduce(auditing, i + 1, array, std::vector<float>(array.size(), 2.0F));
    }
  }
  const RankAudit audit = parse_rank_audit(contents());
  ASSERT_EQ(audit.calls.size(), 60U);
  for (std::size_t i = 0; i < 60; ++i) {
    const std::size_t count = 1 + i % 20;
    EXPECT_EQ(audit.calls[i].in.bytes, count * sizeof(float));
    EXPECT_EQ(audit.calls[i].in.non_finite, i % 7 == 3 ? std::optional(count - 1) : std::nullopt);
    EXPECT_FALSE(audit.calls[i].out.non_finite);
    EXPECT_EQ(audit.calls[i].out.blocks, audit.calls[i % 20].out.blocks);
  }
}

TEST_F(Audit, AnythingInAFileIsReadOrRefused) {
  {
    Auditing auditing(AuditFile::make(folder_, {.rank = 0, .size = 1}), member(0, 1));
    const std::vector<int> array(700, 3);
    for (std::uint64_t i = 1; i < 20; ++i) all_reduce(auditing, i, array, array);
  }
  const auto good = contents();
  ASSERT_EQ(parse_rank_audit(good).calls.size(), 19U);
  std::mt19937_64 random(3);
  for (int i = 0; i < 20'000; ++i) {
    auto changed = good;
    for (int k = 0; k < 3; ++k) {
      const std::size_t at =
          random() % 3 == 0
              ? random() % 64
              : observe::kAuditHeaderBytes + random() % (good.size() - observe::kAuditHeaderBytes);
      changed[at] = static_cast<std::byte>(random());
    }
    if (i % 4 == 0) changed.resize(random() % good.size());
    try {
      const RankAudit read = parse_rank_audit(changed);
      EXPECT_LE(read.calls.size(), 19U);
    } catch (const InvalidArgument&) {
    }
  }
}

}  // namespace
}  // namespace hocket
