// A rank's board, from the rank's own side; see board_layout.h.
#pragma once

#include <cstdint>
#include <string_view>

#include "membership/control/host/memory.h"
#include "monitoring/live/board_layout.h"

namespace hocket::live {

// Lays out the board as the rank's first allocation, so that observers find it. With HOCKET_TOP=0,
// `is_shown` is false, and observers see nothing of the rank.
void lay_out_board(control::HostMemory& memory, bool is_shown = true);

// Returns a rank's board, or null if the rank shows nothing.
BoardLayout* board_at(const control::HostMemory& memory, int place) noexcept;

// Show a group on the board, and remove it. Any thread may call them. They do nothing if the rank
// shows nothing, or if the board has no free entry.
void show_group(control::HostMemory& memory, std::uint64_t block, int rank, std::string_view group);
void hide_group(control::HostMemory& memory, std::uint64_t block) noexcept;

// Returns the board in which calls are counted; null unless metrics_setting() asks for counts.
BoardLayout* counting_board(control::HostMemory& memory) noexcept;

}  // namespace hocket::live
