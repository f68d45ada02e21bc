// Limits of time, as a program gives them. A limit is more than zero: no call could be made within
// less, and its communicator would end on all ranks.
#pragma once

#include <optional>

#include "hocket/types.h"

namespace hocket::base {

// Throws InvalidArgument, which names the argument, where it is not more than zero.
void require_limit(const std::optional<Duration>& limit, const char* name);
// The same of a wait, which 0 makes a single look.
void require_patience(Duration patience, const char* name);

}  // namespace hocket::base
