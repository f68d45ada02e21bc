// The size of the segment that the ranks of a host share.
#include <gtest/gtest.h>

#include "os/segment.h"

namespace hocket::os {
namespace {

constexpr std::size_t kGiB = std::size_t{1} << 30;

// The processor has no addresses for 512 stripes of 256 GiB, nor for more.
TEST(Segment, OfTheAllowedSizeCanBeMapped) {
  for (const std::size_t wanted : {512 * 256 * kGiB, std::size_t{1} << 60}) {
    const std::size_t allowed = allowed_segment_bytes(wanted);
    EXPECT_LT(allowed, wanted);
    const Segment segment = Segment::create(allowed);
    segment.data()[allowed - 1] = std::byte{1};
  }
}

TEST(Segment, ThatFitsIsAsLargeAsWanted) { EXPECT_EQ(allowed_segment_bytes(kGiB), kGiB); }

}  // namespace
}  // namespace hocket::os
