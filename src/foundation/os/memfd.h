// Files in memory.
#pragma once

#include "foundation/os/fd.h"

namespace hocket::os {

// Makes an empty file that is close-on-exec, can be sealed, and can never be executed. `name` is
// visible in /proc. Returns an empty Fd if the kernel refuses; errno has the reason.
Fd make_memfd(const char* name) noexcept;

}  // namespace hocket::os
