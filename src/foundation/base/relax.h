// A hint for loops that poll a value of another processor.
#pragma once

namespace hocket::base {

// Tells the processor that this is a polling loop. The processor then polls less often, and need
// not discard speculative loads when the value changes.
inline void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace hocket::base
