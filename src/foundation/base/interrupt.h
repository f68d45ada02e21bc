// Lets waits ask whether the user wants them to stop. The check is that of hocket/interrupt.h, one
// for each process.
#pragma once

#include <string_view>

#include "foundation/base/deadline.h"

namespace hocket::base {

// Returns the answer of the registered check: true if the user wants this thread to stop. False if
// no check is registered.
bool interrupted();

// Throws Aborted if the user wants this thread to stop. It also runs the thread's Lookout. For
// waits outside communicators. `what` describes the wait, for the message.
void throw_if_interrupted(std::string_view what);

// Returns the time at which a wait must call `throw_if_interrupted` again: `deadline`, or earlier
// if a check or a Lookout is registered.
Deadline until_asked(Deadline deadline) noexcept;

}  // namespace hocket::base
