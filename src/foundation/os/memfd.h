// Makes files that exist only in memory (memfd).
#pragma once

#include "foundation/os/fd.h"

namespace hocket::os {

// Makes an empty file that is close-on-exec, can be sealed, and can never be executed. /proc shows
// it as `name`. Returns an empty Fd if the kernel refuses; errno then has the reason.
Fd make_memfd(const char* name) noexcept;

}  // namespace hocket::os
