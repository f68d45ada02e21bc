// What a thread can ask of the scheduler without privileges.
#pragma once

namespace hocket::os {

// For a thread that sleeps most of the time and has to act fast once woken: it gets its turn sooner
// where others keep the processors busy, and shorter turns for that. Its share stays the same. From
// Linux 6.12 on; elsewhere nothing happens.
void take_short_turns() noexcept;

}  // namespace hocket::os
