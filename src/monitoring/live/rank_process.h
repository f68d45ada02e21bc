// Finds the process of a rank among the processes that hold the job's segment.
#pragma once

#include <span>

#include "foundation/os/segment_holders.h"
#include "membership/control/onlooker.h"

namespace hocket::live {

// Returns the process of a rank; null if none of the holders is. Several holders may have the
// rank's pid, each in its own pid namespace, so the namespaces must be equal, too. If a namespace
// is unknown, the pid decides.
const os::SegmentHolder* find_process(const control::SeenRank& rank,
                                      std::span<const os::SegmentHolder> holders) noexcept;

}  // namespace hocket::live
