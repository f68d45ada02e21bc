// Scheduler settings that need no privileges.
#pragma once

namespace hocket::os {

// Gives the calling thread shorter time slices, which it gets sooner when the processors are busy.
// It is for a thread that sleeps most of the time and must react quickly. Its total share stays the
// same. It has an effect from Linux 6.12 on.
void take_short_turns() noexcept;

}  // namespace hocket::os
