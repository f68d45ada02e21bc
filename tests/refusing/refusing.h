// Has the kernel refuse calls, as the profile of a container or an older kernel does.
#pragma once

#include <string>
#include <vector>

namespace hocket::refusing {

// Names that can be refused: system calls, and advice to madvise.
const std::vector<std::string>& refusable();

// From now on `call` permanently fails with error number `error` in this thread, in threads that it
// starts, and in their children. Throws std::runtime_error if the call is unknown, or the kernel
// has no such filters.
void refuse(const std::string& call, int error);

}  // namespace hocket::refusing
