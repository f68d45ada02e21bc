// The rank's side of what others see of it: see desk_layout.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "foundation/os/segment.h"
#include "hocket/live.h"
#include "membership/control/host.h"
#include "monitoring/live/desk_layout.h"

namespace hocket::live {

// Lays it out: the rank's first allocation, as whoever looks has to find it. HOCKET_TOP=0: shows
// nothing.
void lay_out_desk(control::HostControl& host);

// A group is shown from `sit_down` to `stand_up`. Any thread; do nothing where nothing is shown, or
// too many are there.
void sit_down(control::HostControl& host, std::uint64_t block, int rank, std::string_view group);
void stand_up(control::HostControl& host, std::uint64_t block) noexcept;

// Where calls are counted, as HOCKET_METRICS is set; null where they are not.
DeskLayout* counting_desk(control::HostControl& host) noexcept;
// Serves the job's metrics where HOCKET_METRICS says, with the token HOCKET_METRICS_TOKEN; null where
// it names no address. What stands in the way is logged. `store_clients`: see MetricsServer.
std::unique_ptr<MetricsServer> serve_metrics(
    const os::Segment& segment, std::function<std::optional<std::size_t>()> store_clients);

}  // namespace hocket::live
