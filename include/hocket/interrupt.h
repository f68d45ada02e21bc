// How a waiting call learns that the user wants to stop it.
#pragma once

#include "hocket/cplusplus.h"

namespace hocket {

// Registers, once a process, what a blocking call asks now and then (every few milliseconds, and
// only when it waits that long) in the thread that waits. Where `check` returns true, the call ends
// with Aborted and so does its communicator; init and a store's calls end likewise. Null: nothing
// is asked. Python's binding looks for Ctrl-C this way.
void set_interrupt_check(bool (*check)()) noexcept;

}  // namespace hocket
