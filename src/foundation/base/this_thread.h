// Identifies the current thread.
#pragma once

#include <cstdint>

namespace hocket::base {

// Returns a number that distinguishes threads: the address of a thread-local variable.
inline std::uintptr_t this_thread() noexcept {
  static thread_local char mark [[gnu::tls_model("initial-exec")]];
  return reinterpret_cast<std::uintptr_t>(&mark);
}

}  // namespace hocket::base
