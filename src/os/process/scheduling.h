// Scheduler settings that need no privileges.
#pragma once

namespace hocket::os {

// For a thread that sleeps most of the time and must react quickly: it gets shorter time slices,
// and so gets them sooner when the processors are busy. Its total share stays the same. It has an
// effect from Linux 6.12 on.
void take_short_turns() noexcept;

}  // namespace hocket::os
