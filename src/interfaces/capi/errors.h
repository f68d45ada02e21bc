// Converts exceptions to codes. No exception leaves a function of hocket/c.h.
#pragma once

#include <utility>

#include "hocket/c.h"

namespace hocket::capi {

// Keeps the current exception as this thread's last error, and returns its code. `function` is the
// name of the function that the program called. Call it in a catch block.
int record_caught(const char* function) noexcept;

// Runs `body`. Returns the code of its exception, or HOCKET_OK.
template <typename Body>
int guarded(const char* function, Body&& body) noexcept {
  try {
    std::forward<Body>(body)();
    return HOCKET_OK;
  } catch (...) {
    return record_caught(function);
  }
}

}  // namespace hocket::capi
