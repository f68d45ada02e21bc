// The process-wide hook behind hocket/interrupt.h.
#pragma once

namespace hocket::base {
// Asks the registered check; false without one.
bool interrupted();
}  // namespace hocket::base
