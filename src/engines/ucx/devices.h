// The network devices by which UCX reaches other hosts.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hocket::engines::ucx {

// Returns the value of UCX's setting NET_DEVICES with which TCP uses only this interface. Other
// networks keep all their devices, which are listed in `others`. Returns an empty text if
// `transports`, the value of UCX_TLS, excludes TCP; UCX then chooses the devices.
std::string net_devices(const std::string& interface,
                        std::string_view transports,
                        std::span<const std::string> others);

// Returns the active ports of InfiniBand and RoCE devices, as UCX names them: "mlx5_0:1". `folder`
// is the folder in which the kernel lists the devices.
std::vector<std::string> infiniband_devices(const std::string& folder = "/sys/class/infiniband");

}  // namespace hocket::engines::ucx
