// Which thread this is.
#pragma once

#include <cstdint>

namespace hocket::base {

// What a thread is told from others by: the address of something that it alone has.
inline std::uintptr_t this_thread() noexcept {
  static thread_local char mark [[gnu::tls_model("initial-exec")]];
  return reinterpret_cast<std::uintptr_t>(&mark);
}

}  // namespace hocket::base
