// The network devices that UCX is given: one interface for TCP, and all of the other networks.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "engines/ucx/devices.h"

namespace hocket::engines::ucx {
namespace {

struct Case {
  const char* transports;  // UCX_TLS
  const char* alone;       // on a host without other networks
  const char* beside;      // on one with InfiniBand
};

constexpr Case kCases[]{
    {"", "eth0", "eth0,mlx5_0:1,mlx5_1:1"},
    {"all", "eth0", "eth0,mlx5_0:1,mlx5_1:1"},
    {"^sm", "eth0", "eth0,mlx5_0:1,mlx5_1:1"},
    {"^sm,cuda_copy", "eth0", "eth0,mlx5_0:1,mlx5_1:1"},
    {"^tcp", "", ""},
    {"tcp", "eth0", "eth0"},
    {"tcp,self", "eth0", "eth0"},
    {"tcp,cuda_copy,cuda_ipc", "eth0", "eth0"},
    {"rc,tcp", "eth0", "eth0,mlx5_0:1,mlx5_1:1"},
    {"rc", "", ""},
    {"posix,cma", "", ""},
};

TEST(NetDevicesTest, TcpHasOneInterfaceAndOtherNetworksTheirDevices) {
  const std::vector<std::string> others{"mlx5_0:1", "mlx5_1:1"};
  for (const auto& [transports, alone, beside] : kCases) {
    EXPECT_EQ(net_devices("eth0", transports, {}), alone) << transports;
    EXPECT_EQ(net_devices("eth0", transports, others), beside) << transports;
  }
}

TEST(NetDevicesTest, OnlyPortsInUseAreListed) {
  const std::filesystem::path root = std::filesystem::path(testing::TempDir()) / "net_devices_test";
  std::filesystem::remove_all(root);
  const auto add = [&](const char* device, const char* port, const char* state) {
    const auto folder = root / device / "ports" / port;
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "state") << state << '\n';
  };
  add("mlx5_1", "1", "4: ACTIVE");
  add("mlx5_0", "2", "4: ACTIVE");
  add("mlx5_0", "1", "1: DOWN");
  std::filesystem::create_directories(root / "odd");
  EXPECT_EQ(infiniband_devices(root.string()), (std::vector<std::string>{"mlx5_0:2", "mlx5_1:1"}));
  std::filesystem::remove_all(root);
  EXPECT_TRUE(infiniband_devices(root.string()).empty());
}

}  // namespace
}  // namespace hocket::engines::ucx
