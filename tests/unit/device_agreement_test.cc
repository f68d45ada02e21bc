// The agreement of ranks that follows from the cards of their GPUs.
#include <gtest/gtest.h>

#include "calls/device/engines.h"

namespace hocket::device {
namespace {

DeviceFacts on_gpu(unsigned char gpu, int at_once, int crowd = 1) {
  DeviceFacts facts;
  facts.uuid.bytes[0] = gpu;
  facts.at_once = at_once;
  facts.crowd = crowd;
  return facts;
}

TEST(DeviceAgreement, AGpuARankSharesNothing) {
  const DeviceAgreement agreed = agree({on_gpu(1, 1), on_gpu(2, 1), on_gpu(3, 1)});
  EXPECT_EQ(agreed.ranks_a_gpu, 1);
  EXPECT_FALSE(agreed.in_turns);
  EXPECT_FALSE(agreed.shares_gpu);
}

TEST(DeviceAgreement, ProcessesThatShareAGpuTakeTurns) {
  const DeviceAgreement agreed = agree({on_gpu(1, 1), on_gpu(2, 1), on_gpu(1, 1)});
  EXPECT_EQ(agreed.ranks_a_gpu, 2);
  EXPECT_TRUE(agreed.in_turns);
  EXPECT_TRUE(agreed.shares_gpu);
}

TEST(DeviceAgreement, WhatAGpuRunsSideBySideTakesNoTurns) {
  const DeviceAgreement agreed = agree({on_gpu(1, 4), on_gpu(1, 4), on_gpu(1, 4)});
  EXPECT_EQ(agreed.ranks_a_gpu, 3);
  EXPECT_FALSE(agreed.in_turns);
}

TEST(DeviceAgreement, MpsOnOneGpuIsMpsForAll) {
  DeviceFacts with = on_gpu(1, 48);
  with.mps = 1;
  EXPECT_TRUE(agree({on_gpu(2, 1), with}).mps);
  EXPECT_FALSE(agree({on_gpu(2, 1), on_gpu(1, 1)}).mps);
}

TEST(DeviceAgreement, ThreadsOutsideOfAGroupCount) {
  const DeviceAgreement fits = agree({on_gpu(1, 4, 4), on_gpu(2, 4, 4)});
  EXPECT_EQ(fits.ranks_a_gpu, 4);
  EXPECT_FALSE(fits.in_turns);
  EXPECT_FALSE(fits.shares_gpu);  // these two have a GPU each
  EXPECT_TRUE(agree({on_gpu(1, 4, 8), on_gpu(2, 4, 8)}).in_turns);
}

}  // namespace
}  // namespace hocket::device
