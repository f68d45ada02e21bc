// The rank's side of the data that others see of it: see board_layout.h.
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
#include "monitoring/live/board_layout.h"

namespace hocket::live {

// Lays out the board as the rank's first allocation, so that observers find it. With HOCKET_TOP=0
// it shows nothing.
void lay_out_desk(control::HostControl& host);

// A group is shown from `show_group` to `hide_group`. Any thread. Both do nothing if the rank shows
// nothing, or too many groups are there.
void show_group(control::HostControl& host, std::uint64_t block, int rank, std::string_view group);
void hide_group(control::HostControl& host, std::uint64_t block) noexcept;

// The board in which calls are counted if HOCKET_METRICS is set; else null.
BoardLayout* counting_desk(control::HostControl& host) noexcept;
// Serves the job's metrics at the address in HOCKET_METRICS, with the token in
// HOCKET_METRICS_TOKEN. Null if there is no address. Errors are logged. For `store_clients` see
// MetricsServer.
std::unique_ptr<MetricsServer> serve_metrics(
    const os::Segment& segment, std::function<std::optional<std::size_t>()> store_clients);

}  // namespace hocket::live
