// Checks the time limits that a program passes. A limit must be positive: with 0, no call could
// succeed, and the first one would end its communicator on all ranks.
#pragma once

#include <optional>

#include "hocket/types.h"

namespace hocket::base {

// Throws InvalidArgument if `limit` is not positive. The message calls the argument `name`.
void require_limit(const std::optional<Duration>& limit, const char* name);
// Throws InvalidArgument if `patience` is negative. It is for waits that may be 0, which means one
// check.
void require_patience(Duration patience, const char* name);

}  // namespace hocket::base
