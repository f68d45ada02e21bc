// Scheduler settings that need no privileges.
#pragma once

#include <cstddef>
#include <span>

namespace hocket::os {

// Gives the calling thread shorter time slices. When the processors are busy, it then gets its next
// slice sooner, but its total share stays the same. It is for a thread that sleeps most of the time
// and must react quickly. It has an effect from Linux 6.12 on.
void take_short_turns() noexcept;

// Moves this thread to a processor that it may use and that is not in `taken`. Its affinity mask
// does not change. `choice` selects one of several such processors; threads that move at the same
// time pass different values. Returns false if there is no such processor.
bool leave_processors(std::span<const int> taken, std::size_t choice) noexcept;

}  // namespace hocket::os
