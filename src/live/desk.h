// The rank's side of what others see of it: see desk_layout.h.
#pragma once

#include <cstdint>
#include <string_view>

#include "control/host.h"
#include "live/desk_layout.h"

namespace hocket::live {

// Lays it out: the rank's first allocation, as whoever looks has to find it. HOCKET_TOP=0: shows
// nothing.
void lay_out_desk(control::HostControl& host);

// A group is shown from `sit_down` to `stand_up`. Any thread; do nothing where nothing is shown, or
// too many are there.
void sit_down(control::HostControl& host, std::uint64_t block, int rank, std::string_view group);
void stand_up(control::HostControl& host, std::uint64_t block) noexcept;

}  // namespace hocket::live
