// Lets the user interrupt a waiting call.
#pragma once

#include "hocket/cplusplus.h"

namespace hocket {

// Registers a function that blocking calls ask, once in a process. A thread that waits calls it
// every few milliseconds. If `check` returns true, the call ends with Aborted, and so does its
// communicator. `init` and calls of a store end in the same way. The Python binding uses it to look
// for Ctrl-C. Any thread may call it.
// @param check The function. Null: nothing is asked.
void set_interrupt_check(bool (*check)()) noexcept;

}  // namespace hocket
