#include "monitoring/live/rank_process.h"

#include <algorithm>

namespace hocket::live {

const os::SegmentHolder* find_process(const control::SeenRank& rank,
                                      std::span<const os::SegmentHolder> holders) noexcept {
  const auto found = std::ranges::find_if(holders, [&](const os::SegmentHolder& holder) {
    const bool is_known = holder.own_space != 0 && rank.pid_space != 0;
    return holder.own_pid == rank.pid && (!is_known || holder.own_space == rank.pid_space);
  });
  return found == holders.end() ? nullptr : &*found;
}

}  // namespace hocket::live
