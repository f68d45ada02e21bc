// What a thread can ask of the scheduler without privileges.
#pragma once

#include <cstddef>
#include <span>

namespace hocket::os {

// For a thread that sleeps most of the time and has to act fast once woken: it gets its turn sooner
// where others keep the processors busy, and shorter turns for that. Its share stays the same. From
// Linux 6.12 on; elsewhere nothing happens.
void take_short_turns() noexcept;

// Moves this thread to a processor that it may use and that is not in `taken`. Its affinity mask stays
// what it is. `choice` selects one of several, so that threads which move at once spread out. False if
// there is none.
bool leave_processors(std::span<const int> taken, std::size_t choice) noexcept;

}  // namespace hocket::os
