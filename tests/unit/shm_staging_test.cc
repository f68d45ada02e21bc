// What is staged arrives whole, by whichever stores it went, wherever it begins and ends.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "engines/shm/staging.h"

namespace hocket::engines::shm {
namespace {

TEST(Stager, CopiesEveryByteAndNoOther) {
  std::mt19937 random(7);
  const auto below = [&](std::size_t end) { return static_cast<std::size_t>(random()) % end; };
  Stager stager;
  constexpr std::byte kUntouched{0x5a};
  constexpr std::size_t kRoom = 160 * 1024;
  std::vector<std::byte> from(kRoom);
  for (std::byte& b : from) b = static_cast<std::byte>(random());
  // More copies than there are from one that is timed to the next, however far the caches are.
  for (int i = 0; i < 1500; ++i) {
    const std::size_t bytes = below(i % 3 == 0 ? 300 : kRoom - 128);
    const std::size_t in = below(64), out = below(64);
    std::vector<std::byte> to(kRoom, kUntouched);
    stager.copy(to.data() + out, from.data() + in, bytes, i % 2 == 0);
    ASSERT_TRUE(std::equal(from.begin() + static_cast<std::ptrdiff_t>(in),
                           from.begin() + static_cast<std::ptrdiff_t>(in + bytes),
                           to.begin() + static_cast<std::ptrdiff_t>(out)))
        << bytes << " bytes from " << in << " to " << out;
    ASSERT_TRUE(out == 0 || to[out - 1] == kUntouched);
    ASSERT_EQ(to[out + bytes], kUntouched) << bytes << " bytes to " << out;
  }
}

}  // namespace
}  // namespace hocket::engines::shm
