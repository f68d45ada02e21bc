#include "monitoring/live/status_board.h"

#include <array>

#include "foundation/base/config.h"
#include "foundation/base/log.h"
#include "hocket/error.h"
#include "membership/control/onlooker.h"

namespace hocket::live {
namespace {

// Null where the rank shows nothing.
BoardLayout* own_board_of(control::HostControl& host) noexcept {
  auto* const board =
      reinterpret_cast<BoardLayout*>(host.at(control::first_block_of(host, host.self())));
  return board->manner.load(std::memory_order_acquire) == BoardLayout::kShown ? board : nullptr;
}

}  // namespace

void lay_out_desk(control::HostControl& host) {
  const bool shows = base::environment("HOCKET_TOP") != "0";
  try {
    const std::array holders{host.self()};
    // Zero, as fresh groups and rows are. Memory is taken where it is written.
    const std::uint64_t offset = host.allocate(sizeof(BoardLayout), holders);
    auto* const board = reinterpret_cast<BoardLayout*>(host.at(offset));
    board->meters.store(base::environment("HOCKET_METRICS") ? 1 : 0, std::memory_order_relaxed);
    board->manner.store(shows ? BoardLayout::kShown : BoardLayout::kPrivate,
                        std::memory_order_release);
  } catch (const SystemError& error) {  // out of memory: the job itself needs what is left
    base::log(base::LogLevel::kInfo, error.what());
  }
}

void show_group(control::HostControl& host, std::uint64_t block, int rank, std::string_view group) {
  BoardLayout* const board = own_board_of(host);
  if (board == nullptr) return;
  EntryContent content{.block = block, .rank = rank, .name = {}};
  content.name = group;
  for (BoardEntry& entry : board->groups) {
    if (entry.take(content)) return;
  }
}

void hide_group(control::HostControl& host, std::uint64_t block) noexcept {
  BoardLayout* const board = own_board_of(host);
  if (board == nullptr) return;
  for (BoardEntry& entry : board->groups) {
    if (entry.leave(block)) return;
  }
}

BoardLayout* counting_desk(control::HostControl& host) noexcept {
  BoardLayout* const board = own_board_of(host);
  if (board == nullptr || board->meters.load(std::memory_order_relaxed) == 0) return nullptr;
  return board;
}

}  // namespace hocket::live
