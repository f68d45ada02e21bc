#include "monitoring/live/metrics_setting.h"

#include <fmt/format.h>

#include "foundation/base/config.h"
#include "hocket/error.h"

namespace hocket::live {

os::HostPort checked_metrics_address(const std::string& address, const std::string& token) {
  const auto where = os::parse_host_port(address);
  if (!where) {
    throw InvalidArgument(fmt::format(
        "the address of metrics, \"{}\", is no HOST:PORT, such as 127.0.0.1:9464", address));
  }
  if (token.empty() && !os::is_loopback(where->host)) {
    throw InvalidArgument(fmt::format(
        "metrics at {} could be read by other hosts; set HOCKET_METRICS_TOKEN, which readers "
        "must show, or serve them at 127.0.0.1",
        address));
  }
  return *where;
}

MetricsSetting metrics_setting() {
  constexpr const char* kOnlyCounted = "count";  // `hocket run` serves the metrics
  const auto address = base::environment("HOCKET_METRICS");
  if (!address) return {};
  if (*address == kOnlyCounted) return {.counts = true, .address = {}, .token = {}};
  MetricsSetting setting{.counts = true,
                         .address = *address,
                         .token = base::environment("HOCKET_METRICS_TOKEN").value_or("")};
  try {
    checked_metrics_address(setting.address, setting.token);
  } catch (const InvalidArgument& error) {
    throw InvalidArgument(fmt::format("HOCKET_METRICS: {}", error.what()));
  }
  return setting;
}

}  // namespace hocket::live
