// The size of the segment that the ranks of a host share.
#include <gtest/gtest.h>

#include "foundation/os/segment.h"

namespace hocket::os {
namespace {

constexpr std::size_t kGiB = std::size_t{1} << 30;

// The processor has no addresses for 512 stripes of 256 GiB, nor for more.
TEST(Segment, ThatHasRoomCanBeMapped) {
  for (const std::size_t wanted : {512 * 256 * kGiB, std::size_t{1} << 60}) {
    const std::size_t allowed = segment_bytes_with_room(wanted);
    EXPECT_LT(allowed, wanted);
    const Segment segment = Segment::create(allowed);
    segment.data()[allowed - 1] = std::byte{1};
  }
}

TEST(Segment, ThatFitsIsAsLargeAsWanted) { EXPECT_EQ(segment_bytes_with_room(kGiB), kGiB); }

}  // namespace
}  // namespace hocket::os
