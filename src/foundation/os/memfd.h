// Files of memory.
#pragma once

#include "foundation/os/fd.h"

namespace hocket::os {

// A new one, empty, closed on exec, that can be sealed and never executed. `name` is for people, in
// /proc. Owns nothing where the kernel refuses: errno says why.
Fd make_memfd(const char* name) noexcept;

}  // namespace hocket::os
