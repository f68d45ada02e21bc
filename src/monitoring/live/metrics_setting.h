// Whether and where a job's metrics are served.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "foundation/os/segment.h"
#include "foundation/os/sockets/socket.h"
#include "hocket/live.h"

namespace hocket::live {

// The settings HOCKET_METRICS and HOCKET_METRICS_TOKEN. A value.
struct MetricsSetting {
  bool counts = false;  // whether calls are counted
  std::string address;  // where this job serves metrics; empty: only `hocket run` may
  std::string token;    // readers must show it; empty: nothing
};
// @throws InvalidArgument if the address is invalid, or needs a token and none is set.
MetricsSetting metrics_setting();

// @throws InvalidArgument if `address` is no HOST:PORT, or if other hosts could read it without a
// token.
os::HostPort checked_metrics_address(const std::string& address, const std::string& token);

// Serves the job's metrics as metrics_setting() says. Returns null if no address is set, or if it
// cannot listen there, which it logs. For `store_clients` see MetricsServer.
std::unique_ptr<MetricsServer> serve_metrics(
    const os::Segment& segment, std::function<std::optional<std::size_t>()> store_clients);

}  // namespace hocket::live
