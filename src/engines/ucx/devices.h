// The devices by which UCX reaches other hosts.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hocket::engines::ucx {

// Returns the value of UCX's setting NET_DEVICES by which TCP goes over this interface alone. Other
// networks keep all their devices: `others`, which have names of their own. Empty: UCX chooses,
// because `transports`, the value of UCX_TLS, leaves TCP out.
std::string net_devices(const std::string& interface,
                        std::string_view transports,
                        std::span<const std::string> others);

// Returns the ports of InfiniBand and RoCE devices that are in use, as UCX names them: "mlx5_0:1".
// `folder` is the kernel's list of them.
std::vector<std::string> infiniband_devices(const std::string& folder = "/sys/class/infiniband");

}  // namespace hocket::engines::ucx
