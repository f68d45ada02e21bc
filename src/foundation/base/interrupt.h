// The process-wide hook behind hocket/interrupt.h.
#pragma once

#include <string_view>

#include "foundation/base/deadline.h"

namespace hocket::base {

// Calls the registered check. Returns false if there is none.
bool interrupted();

// Throws Aborted if the user wants this thread to stop, for waits outside communicators. `what`
// describes the wait, for the message.
void throw_if_interrupted(std::string_view what);

// Returns the time until which a wait may last before it asks again: `deadline`, or earlier if a
// check is registered.
Deadline until_asked(Deadline deadline) noexcept;

}  // namespace hocket::base
