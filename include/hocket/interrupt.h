// Lets the user interrupt a waiting call.
#pragma once

#include "hocket/cplusplus.h"

namespace hocket {

// Registers the function by which blocking calls find out whether the user has interrupted them. A
// process has one such function. A waiting thread calls `check` every 5 to 100 ms, so it must be
// safe in any thread. If it returns true, the call ends with Aborted, and so does its communicator.
// `init` and calls of a store end in the same way. The Python binding uses it to look for Ctrl-C.
// @param check The function. Null: calls cannot be interrupted.
void set_interrupt_check(bool (*check)()) noexcept;

}  // namespace hocket
