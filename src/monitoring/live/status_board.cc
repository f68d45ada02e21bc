#include "monitoring/live/status_board.h"

#include <array>

#include "foundation/base/log.h"
#include "hocket/error.h"
#include "membership/control/onlooker.h"
#include "monitoring/live/metrics_setting.h"

namespace hocket::live {

BoardLayout* board_at(const control::HostMemory& memory, int place) noexcept {
  auto* const board = reinterpret_cast<BoardLayout*>(memory.at(memory.first_block(place)));
  return board->manner.load(std::memory_order_acquire) == BoardLayout::kShown ? board : nullptr;
}

void lay_out_board(control::HostMemory& memory, bool is_shown) {
  try {
    const std::array holders{memory.self()};
    // Fresh memory is zero, which marks entries and rows as free. Pages are taken when written.
    const std::uint64_t offset = memory.allocate(sizeof(BoardLayout), holders);
    auto* const board = reinterpret_cast<BoardLayout*>(memory.at(offset));
    board->meters.store(metrics_setting().counts ? 1 : 0, std::memory_order_relaxed);
    board->manner.store(is_shown ? BoardLayout::kShown : BoardLayout::kPrivate,
                        std::memory_order_release);
  } catch (const SystemError& error) {  // out of memory: the job runs without a board
    base::log(base::LogLevel::kInfo, error.what());
  }
}

void show_group(control::HostMemory& memory,
                std::uint64_t block,
                int rank,
                std::string_view group) {
  BoardLayout* const board = board_at(memory, memory.self());
  if (board == nullptr) return;
  EntryContent content{.block = block, .rank = rank, .name = {}};
  content.name = group;
  for (BoardEntry& entry : board->groups) {
    if (entry.take(content)) return;
  }
}

void hide_group(control::HostMemory& memory, std::uint64_t block) noexcept {
  BoardLayout* const board = board_at(memory, memory.self());
  if (board == nullptr) return;
  for (BoardEntry& entry : board->groups) {
    if (entry.leave(block)) return;
  }
}

BoardLayout* counting_board(control::HostMemory& memory) noexcept {
  BoardLayout* const board = board_at(memory, memory.self());
  if (board == nullptr || board->meters.load(std::memory_order_relaxed) == 0) return nullptr;
  return board;
}

}  // namespace hocket::live
