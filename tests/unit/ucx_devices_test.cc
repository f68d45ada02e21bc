// The fabric that reaches other ranks' GPUs, and its lifetime; on the fake driver's GPUs.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>

#include "engines/ucx/device_fabrics.h"
#include "foundation/cuda/driver.h"

namespace hocket::engines::ucx {
namespace {

class UcxDevices : public testing::Test {
 protected:
  void SetUp() override {
    ucx_ = UcxLibrary::find();
    if (!ucx_.library) GTEST_SKIP() << ucx_.why_not;
    const cuda::FoundDriver found = cuda::Driver::find();
    ASSERT_TRUE(found.driver) << found.why_not;
    for (int i = 0; i < 2; ++i) {
      devices_.push_back(std::make_shared<cuda::DeviceContext>(found.driver, i));
    }
  }
  std::shared_ptr<Fabric> make(const DeviceFabrics::Device& device) {
    return std::make_shared<Fabric>(ucx_.library, FabricOptions{.gpus = true, .device = device});
  }
  DeviceFabrics fabrics() {
    return DeviceFabrics([this](const auto& device) { return make(device); });
  }

  static constexpr std::array kRanks{0, 1};
  FoundUcx ucx_;
  std::vector<DeviceFabrics::Device> devices_;
};

TEST_F(UcxDevices, AFabricHoldsTheContextThatUcxUses) {
  const std::weak_ptr<const cuda::DeviceContext> context = devices_[0];
  auto fabric = make(devices_[0]);
  devices_.clear();
  EXPECT_FALSE(context.expired());
  fabric.reset();
  EXPECT_TRUE(context.expired());
}

TEST_F(UcxDevices, WhatUcxHasInAContextThatIsGoneIsLeftAlone) {
  const std::weak_ptr<const cuda::DeviceContext> context = devices_[0];
  auto fabric = make(devices_[0]);
  void* driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  auto* find = reinterpret_cast<cuda::Result (*)(const char*, void**, int, std::uint64_t, int*)>(
      ::dlsym(driver, "cuGetProcAddress_v2"));
  void* reset = nullptr;
  ASSERT_EQ(find("cuDevicePrimaryCtxReset", &reset, 12000, 0, nullptr), cuda::Result::kSuccess);
  reinterpret_cast<cuda::Result (*)(int)>(reset)(0);
  devices_.clear();
  fabric.reset();
  EXPECT_FALSE(context.expired());
}

TEST_F(UcxDevices, TheNewestServesUntilAnotherIsWanted) {
  DeviceFabrics all = fabrics();
  EXPECT_EQ(all.number_for(devices_[0], kRanks), 0);
  const auto first = all.get(devices_[0], 0);
  EXPECT_EQ(all.number_for(devices_[0], kRanks), 0);
  EXPECT_EQ(all.get(devices_[0], 0), first);
  // Another rank has lost a connection.
  const auto second = all.get(devices_[0], 1);
  EXPECT_NE(second, first);
  EXPECT_NE(second->address(), first->address());
  EXPECT_EQ(all.number_for(devices_[0], kRanks), 1);
  EXPECT_EQ(all.get(devices_[0], 1), second);
}

TEST_F(UcxDevices, AnotherGpuHasAnother) {
  DeviceFabrics all = fabrics();
  const auto first = all.get(devices_[0], all.number_for(devices_[0], kRanks));
  EXPECT_EQ(all.number_for(devices_[1], kRanks), 1);
  EXPECT_NE(all.get(devices_[1], 1), first);
  EXPECT_EQ(all.number_for(devices_[1], kRanks), 1);
}

TEST_F(UcxDevices, GpusThatConnectAtTheSameTimeHaveTheirOwn) {
  DeviceFabrics all = fabrics();
  const int one = all.number_for(devices_[0], kRanks);
  const int other = all.number_for(devices_[1], kRanks);
  EXPECT_NE(one, other);
  // Both of one GPU want the same, however often they ask.
  EXPECT_EQ(all.number_for(devices_[0], kRanks), one);
  const auto first = all.get(devices_[0], one);
  const auto second = all.get(devices_[1], other);
  EXPECT_NE(first, second);
  EXPECT_EQ(all.get(devices_[0], one), first);
  EXPECT_EQ(all.get(devices_[1], other), second);
  EXPECT_NE(all.get(devices_[1], one), first);  // whatever is asked for, never another GPU's
}

TEST_F(UcxDevices, WhatAnotherGpuHasTakenSinceIsNobodyElses) {
  DeviceFabrics all = fabrics();
  const auto first = all.get(devices_[0], all.number_for(devices_[0], kRanks));
  const int other = all.number_for(devices_[1], kRanks);
  const auto second = all.get(devices_[1], other);
  // The first GPU's is still the same, and does not become the newest by that.
  EXPECT_EQ(all.get(devices_[0], all.number_for(devices_[0], kRanks)), first);
  EXPECT_EQ(all.number_for(devices_[1], kRanks), other);
  // Other ranks want the number that is the second GPU's here: the first gets a larger one.
  const int wanted = all.number_for(devices_[0], kRanks, other);
  EXPECT_GT(wanted, other);
  EXPECT_NE(all.get(devices_[0], wanted), first);
  EXPECT_EQ(all.number_for(devices_[1], kRanks), other);
  EXPECT_EQ(all.get(devices_[1], other), second);
}

TEST_F(UcxDevices, NumbersThatOtherRanksWantAreTaken) {
  DeviceFabrics all = fabrics();
  EXPECT_EQ(all.number_for(devices_[0], kRanks, 5), 5);
  EXPECT_EQ(all.number_for(devices_[0], kRanks, 3), 5);
  EXPECT_EQ(all.number_for(devices_[1], kRanks, 5), 6);
}

TEST_F(UcxDevices, AnOlderOneStaysTheSame) {
  DeviceFabrics all = fabrics();
  const auto first = all.get(devices_[0], 0);
  const auto second = all.get(devices_[0], 1);
  EXPECT_EQ(all.get(devices_[0], 0), first);
  EXPECT_EQ(all.number_for(devices_[0], kRanks), 1);
  EXPECT_EQ(all.get(devices_[0], 1), second);
}

TEST_F(UcxDevices, OlderOnesLiveAsLongAsTheyAreUsed) {
  DeviceFabrics all = fabrics();
  auto first = all.get(devices_[0], 0);
  const std::weak_ptr<Fabric> used = first;
  all.get(devices_[0], 1);
  EXPECT_FALSE(used.expired());
  first.reset();
  EXPECT_TRUE(used.expired());
}

}  // namespace
}  // namespace hocket::engines::ucx
