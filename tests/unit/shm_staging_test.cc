// Staged data arrives whole, whatever stores were used, wherever it begins and ends, claimed or
// not.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "engines/shm/staging.h"

namespace hocket::engines::shm {
namespace {

class Staging : public testing::TestWithParam<Readers> {};

TEST_P(Staging, CopiesEveryByteAndNoOther) {
  std::mt19937 random(7);
  const auto below = [&](std::size_t end) { return static_cast<std::size_t>(random()) % end; };
  Stager stager(GetParam());
  constexpr std::byte kUntouched{0x5a};
  constexpr std::size_t kRoom = 160 * 1024;
  std::vector<std::byte> from(kRoom);
  for (std::byte& b : from) b = static_cast<std::byte>(random());
  // More than there is from one copy that is timed to the next, however far the caches are.
  for (int i = 0; i < 1500; ++i) {
    const std::size_t bytes = below(i % 3 == 0 ? 300 : kRoom - 128);
    const std::size_t in = below(64), out = below(64), back = below(64);
    const auto begin = from.begin() + static_cast<std::ptrdiff_t>(in);
    const auto end = begin + static_cast<std::ptrdiff_t>(bytes);
    std::vector<std::byte> chunk(kRoom, kUntouched);
    stager.copy(chunk.data() + out, from.data() + in, bytes, i % 2 == 0);
    const auto check = [&](const std::vector<std::byte>& to, std::size_t at) {
      ASSERT_TRUE(std::equal(begin, end, to.begin() + static_cast<std::ptrdiff_t>(at)))
          << bytes << " bytes from " << in << " to " << at;
      ASSERT_TRUE(at == 0 || to[at - 1] == kUntouched);
      ASSERT_EQ(to[at + bytes], kUntouched) << bytes << " bytes to " << at;
    };
    check(chunk, out);
    std::vector<std::byte> taken(kRoom, kUntouched);
    const Staged staged{std::span(chunk).subspan(out, bytes), stager.claimable()};
    staged.copy_to(taken.data() + back,
                   i % 5 == 0 ? core::Stores::kStreaming : core::Stores::kCached);
    check(taken, back);
    check(chunk, out);  // what is claimed stays as it is
  }
}

INSTANTIATE_TEST_SUITE_P(Readers, Staging, testing::Values(Readers::kOne, Readers::kSeveral));

// Before anything else is known, what has one reader goes the way that is quick if it is claimed.
TEST(Staging, OneReaderClaimsWhereThatIsPossible) {
  std::vector<std::byte> from(8192), to(8192);
  for (const auto readers : {Readers::kOne, Readers::kSeveral}) {
    Stager stager(readers);
    stager.copy(to.data(), from.data(), to.size(), true);
    EXPECT_EQ(stager.claimable(), readers == Readers::kOne && core::can_claim());
  }
}

// The way that takes less is kept, until both are tried again.
TEST(LongStores, KeepsTheQuickerStores) {
  for (const bool streaming_is_quicker : {false, true}) {
    LongStores ways;
    int tried_streaming = 0;
    for (unsigned call = 0; call < LongStores::kRound; ++call) {
      ways.begin();
      if (call < LongStores::kTried) {
        tried_streaming += ways.is_streaming();
      } else {
        EXPECT_EQ(ways.is_streaming(), streaming_is_quicker) << call;
      }
      // A rank that was interrupted took long by either.
      ways.took(call % 4 < 2 ? 9 : ways.is_streaming() == streaming_is_quicker ? 1 : 1.3);
    }
    EXPECT_EQ(tried_streaming, LongStores::kTried / 2);
    ways.begin();
    EXPECT_TRUE(ways.is_streaming());
    ways.begin();
    EXPECT_FALSE(ways.is_streaming());
  }
}

// A claim changes nothing, and reaches nothing beyond what it names.
TEST(Claim, LeavesEverythingAsItIs) {
  std::vector<std::byte> memory(4096);
  for (std::size_t i = 0; i < memory.size(); ++i)
    memory[i] = static_cast<std::byte>(i * 7 + i / 256);
  const std::vector<std::byte> before = memory;
  for (const std::size_t bytes : {0, 1, 63, 64, 65, 1000, 2048}) {
    for (const std::size_t at : {0, 1, 31, 64, 100}) core::claim(memory.data() + at, bytes);
  }
  EXPECT_EQ(memory, before);
}

}  // namespace
}  // namespace hocket::engines::shm
