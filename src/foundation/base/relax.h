// For loops that look at what another processor is about to write.
#pragma once

namespace hocket::base {

// Tells the processor that this is such a loop: it looks less often and, when the value changes,
// does not have to take back the looks it was already ahead with.
inline void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace hocket::base
