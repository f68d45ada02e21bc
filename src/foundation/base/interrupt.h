// The process-wide hook behind hocket/interrupt.h.
#pragma once

#include <string_view>

#include "foundation/base/deadline.h"

namespace hocket::base {

// Asks the registered check; false without one.
bool interrupted();

// For waits outside of communicators: throws Aborted where the user wants this thread to stop.
// `what` is what it waits for, or does.
void throw_if_interrupted(std::string_view what);

// How long a wait may last before it asks again: `deadline`, or less where a check is registered.
Deadline until_asked(Deadline deadline) noexcept;

}  // namespace hocket::base
