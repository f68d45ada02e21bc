// Time limits that a program passes. A limit must be positive: no call could succeed within 0, and
// its communicator would end on all ranks.
#pragma once

#include <optional>

#include "hocket/types.h"

namespace hocket::base {

// Throws InvalidArgument, which names the argument, if it is not positive.
void require_limit(const std::optional<Duration>& limit, const char* name);
// Does the same for a wait, where 0 means one check.
void require_patience(Duration patience, const char* name);

}  // namespace hocket::base
