// Scheduler settings that need no privileges.
#pragma once

#include <cstddef>
#include <span>

namespace hocket::os {

// Gives the calling thread shorter time slices, which it gets sooner when the processors are busy.
// It is for a thread that sleeps most of the time and must react quickly. Its total share stays the
// same. It has an effect from Linux 6.12 on.
void take_short_turns() noexcept;

// Moves this thread to a processor that it may use and that is not in `taken`. Its affinity mask
// stays what it is. `choice` selects one of several, so that threads which move at once spread out.
// False if there is none.
bool leave_processors(std::span<const int> taken, std::size_t choice) noexcept;

}  // namespace hocket::os
