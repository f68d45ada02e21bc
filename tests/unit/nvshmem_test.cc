// NVSHMEM as far as it needs no GPU: which ranks can use its heap together, and which libraries.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "engines/nvshmem/agreement.h"
#include "engines/nvshmem/library.h"
#include "engines/nvshmem/spare_ranges.h"

namespace hocket::nvshmem {
namespace {

constexpr int kVersion = 30405;

std::vector<Facts> not_started(int ranks) {
  std::vector<Facts> facts(static_cast<std::size_t>(ranks));
  for (int i = 0; i < ranks; ++i) {
    Facts& f = facts[static_cast<std::size_t>(i)];
    f.version = kVersion;
    f.gpu.bytes[3] = static_cast<char>(i + 1);
  }
  return facts;
}

// A world whose PEs are the ranks in this order.
std::vector<Facts> running(const std::vector<int>& pes, std::uint64_t world) {
  auto facts = not_started(static_cast<int>(pes.size()));
  for (std::size_t i = 0; i < pes.size(); ++i) {
    facts[i].status = NvshmemStatus::kInitialized;
    facts[i].pe = pes[i];
    facts[i].pes = static_cast<int>(pes.size());
    facts[i].world = world;
  }
  return facts;
}

void expect_refusal(const std::vector<Facts>& facts, const char* part, bool whole_job = true) {
  const HeapAgreement agreed = agree(facts, whole_job);
  EXPECT_NE(agreed.why_not.find(part), std::string::npos) << agreed.why_not;
  EXPECT_FALSE(agreed.start);
}

TEST(NvshmemAgreement, RanksWithoutItStartIt) {
  for (const bool whole : {false, true}) {
    const HeapAgreement agreed = agree(not_started(3), whole);
    EXPECT_EQ(agreed.why_not, "");
    EXPECT_TRUE(agreed.start);
    EXPECT_EQ(agreed.pes, (std::vector<int>{0, 1, 2}));
  }
}

TEST(NvshmemAgreement, ARunningWorldIsUsedInItsOwnOrder) {
  const HeapAgreement agreed = agree(running({2, 0, 1}, 77), false);
  EXPECT_EQ(agreed.why_not, "");
  EXPECT_FALSE(agreed.start);
  EXPECT_EQ(agreed.pes, (std::vector<int>{2, 0, 1}));
}

TEST(NvshmemAgreement, AnothersWorldIsTheWholeJobsOrNobodys) {
  EXPECT_EQ(agree(running({1, 0}, 0), true).why_not, "");
  EXPECT_TRUE(agree(running({1, 0}, 0), true).name);
  EXPECT_FALSE(agree(running({1, 0}, 9), true).name);
  expect_refusal(running({1, 0}, 0), "not as one world", false);
}

TEST(NvshmemAgreement, TwoWorldsAreNotOne) {
  auto facts = running({0, 1}, 5);
  facts[1].world = 6;
  expect_refusal(facts, "not as one world");
}

TEST(NvshmemAgreement, AWorldOfOtherRanksIsRefused) {
  auto facts = running({0, 1, 2}, 5);
  facts.pop_back();
  expect_refusal(facts, "as PE 0 of 3, and these are 2 ranks");
  facts = running({0, 1}, 5);
  facts[1] = not_started(2)[1];
  expect_refusal(facts, "runs in rank 0 as PE 0 of 2 and not in rank 1");
  facts = running({0, 1}, 5);
  facts[1].pe = 0;
  expect_refusal(facts, "rank 1 as PE 0, which it cannot be");
  facts[1].pe = 2;
  expect_refusal(facts, "rank 1 as PE 2, which it cannot be");
  facts = running({0, 1}, 5);
  facts[1].pieces = 3;
  expect_refusal(facts, "rank 0 has 0 pieces of NVSHMEM's heap and rank 1 3");
  facts[1].status = NvshmemStatus::kBootstrapped;
  expect_refusal(facts, "rank 1 has begun to start NVSHMEM");
}

TEST(NvshmemAgreement, LibrariesAndGpusHaveToFit) {
  auto facts = not_started(3);
  facts[2].why_not = "it is not installed";
  expect_refusal(facts, "rank 2: it is not installed");
  facts = not_started(3);
  facts[1].version = 30800;
  expect_refusal(facts, "rank 0 has NVSHMEM 3.4.5 and rank 1 3.8.0");
  facts = not_started(3);
  facts[2].gpu = facts[0].gpu;
  expect_refusal(facts, "ranks 0 and 2 use one GPU");
}

TEST(NvshmemAgreement, TextsOfOthersEndSomewhere) {
  auto facts = not_started(2);
  std::memset(facts[1].why_not.chars, 'x', sizeof facts[1].why_not.chars);
  EXPECT_EQ(agree(facts, true).why_not, "rank 1: " + std::string(160, 'x'));
}

TEST(NvshmemTeams, AreOfOneWorldAndItsOwnOrderIsTheWorld) {
  EXPECT_TRUE(agree_team(running({0, 1, 2}, 5), false).whole_world);
  const TeamAgreement turned = agree_team(running({1, 0, 2}, 5), false);
  EXPECT_EQ(turned.why_not, "");
  EXPECT_FALSE(turned.whole_world);
  auto part = running({0, 1, 2}, 5);
  part.pop_back();
  EXPECT_EQ(agree_team(part, false).why_not, "");
  EXPECT_FALSE(agree_team(part, false).whole_world);
  part[1].world = 6;
  EXPECT_EQ(agree_team(part, false).why_not, "ranks 0 and 1 are in different worlds of it");
  part[1] = not_started(2)[1];
  EXPECT_NE(agree_team(part, false).why_not.find("does not run in rank 1"), std::string::npos);
}

TEST(NvshmemTeams, OfAnothersWorldAreOfTheWholeJob) {
  EXPECT_TRUE(agree_team(running({0, 1, 2}, 0), true).whole_world);
  EXPECT_EQ(agree_team(running({2, 1, 0}, 0), true).why_not, "");
  // PEs 0 and 1 of 2; the ranks may belong to two worlds.
  const std::string alone = agree_team(running({0, 1}, 0), false).why_not;
  EXPECT_NE(alone.find("the program has started it in rank 0, as PE 0 of 2"), std::string::npos);
  auto part = running({0, 1, 2}, 0);
  part.pop_back();
  for (const bool whole_job : {false, true}) {
    const std::string why_not = agree_team(part, whole_job).why_not;
    EXPECT_NE(why_not.find("cannot be told from these 2 ranks"), std::string::npos) << why_not;
  }
}

TEST(NvshmemTeams, HaveEachPeOnce) {
  for (const int pe : {0, -1, 3}) {
    auto part = running({0, 1, 2}, 5);
    part[2].pe = pe;
    const std::string why_not = agree_team(part, true).why_not;
    EXPECT_NE(why_not.find("rank 2 as PE " + std::to_string(pe)), std::string::npos) << why_not;
  }
}

// Compared with a map of single bytes. Added and taken ranges overlap existing ones in any way.
TEST(NvshmemSpareRanges, OverlapInAnyWay) {
  constexpr std::size_t kBytes = 64;
  std::vector<std::byte> memory(kBytes);
  std::mt19937 random(7);
  SpareRanges ranges;
  std::vector<bool> spare(kBytes, false);
  for (int turn = 0; turn < 20000; ++turn) {
    const std::size_t at = random() % kBytes;
    const std::size_t bytes = std::min<std::size_t>(random() % 24, kBytes - at);
    const bool adds = random() % 2 == 0;
    adds ? ranges.add(&memory[at], bytes) : ranges.take(&memory[at], bytes);
    std::fill_n(spare.begin() + static_cast<int>(at), bytes, adds);
    std::size_t most = 0;
    for (std::size_t i = 0, run = 0; i < kBytes; ++i) {
      run = spare[i] ? run + 1 : 0;
      most = std::max(most, run);
    }
    ASSERT_EQ(ranges.largest(), most) << turn;
  }
}

// Against a map of single bytes.
TEST(NvshmemSpareRanges, AreAsLargeAsTheirPartsTogether) {
  constexpr std::size_t kBytes = 64;
  std::vector<std::byte> memory(kBytes);
  std::mt19937 random(5);
  SpareRanges ranges;
  std::vector<bool> spare(kBytes, false);
  EXPECT_EQ(ranges.largest(), 0u);
  for (int turn = 0; turn < 5000; ++turn) {
    const std::size_t at = random() % kBytes;
    std::size_t end = at;
    while (end < kBytes && spare[end] == spare[at] && end - at < 1 + random() % 16) ++end;
    if (spare[at]) {
      ranges.take(&memory[at], end - at);
    } else {
      ranges.add(&memory[at], end - at);
    }
    std::fill(
        spare.begin() + static_cast<int>(at), spare.begin() + static_cast<int>(end), !spare[at]);
    std::size_t most = 0;
    for (std::size_t i = 0, run = 0; i < kBytes; ++i) {
      run = spare[i] ? run + 1 : 0;
      most = std::max(most, run);
    }
    ASSERT_EQ(ranges.largest(), most) << turn;
  }
}

TEST(NvshmemAbi, HasItsSizes) {
  EXPECT_EQ(sizeof(UniqueId), 128u);
  EXPECT_EQ(sizeof(InitArguments), 128u);
  EXPECT_EQ(sizeof(InitAttributes), 144u);
  EXPECT_EQ(sizeof(TeamConfig), 64u);
  EXPECT_EQ(tag<InitAttributes>(1), 0x10090);
}

class NvshmemLibraryTest : public testing::Test {
 protected:
  void TearDown() override { ::unsetenv("FAKE_NVSHMEM_VERSION"); }
  static constexpr const char* kFake = HOCKET_FAKE_NVSHMEM;
};

// This is a single test, because a loaded library stays in the process and is found there.
TEST_F(NvshmemLibraryTest, IsFoundAndCheckedOrSaysWhatToDo) {
  if (void* system = ::dlopen("libnvshmem_host.so.3", RTLD_NOW)) {
    ::dlclose(system);
    GTEST_SKIP() << "this system has one";
  }
  const FoundNvshmem absent = NvshmemLibrary::find({.file = "", .folders = {"/nowhere"}});
  EXPECT_EQ(absent.library, nullptr);
  EXPECT_NE(absent.why_not.find("pip: nvidia-nvshmem"), std::string::npos) << absent.why_not;
  const FoundNvshmem named = NvshmemLibrary::find({.file = "/nowhere/lib.so", .folders = {}});
  EXPECT_EQ(named.why_not.rfind("HOCKET_NVSHMEM_LIBRARY: /nowhere/lib.so", 0), 0u) << named.why_not;

  for (const char* version : {"3.1.7", "2.11.0", "4.0.0"}) {
    ::setenv("FAKE_NVSHMEM_VERSION", version, 1);
    const FoundNvshmem found = NvshmemLibrary::find({.file = kFake, .folders = {}});
    EXPECT_EQ(found.library, nullptr);
    EXPECT_NE(found.why_not.find(std::string("is NVSHMEM ") + version + ", and hocket needs 3.2.0"),
              std::string::npos)
        << found.why_not;
  }
  for (const char* version : {"3.2.0", "3.4.5", "3.99.0"}) {
    ::setenv("FAKE_NVSHMEM_VERSION", version, 1);
    const FoundNvshmem found = NvshmemLibrary::find({.file = kFake, .folders = {}});
    ASSERT_NE(found.library, nullptr) << found.why_not;
    EXPECT_EQ(found.library->version_text(), version);
    EXPECT_EQ(found.library->path(), kFake);
  }
}

}  // namespace
}  // namespace hocket::nvshmem
