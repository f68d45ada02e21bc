// Has the kernel refuse calls, as the profile of a container or an older kernel does.
#pragma once

#include <string>
#include <vector>

namespace hocket::refusing {

// What can be refused: names of system calls, and of advice to madvise.
const std::vector<std::string>& refusable();

// From now on `call` fails with error number `error` in this thread, those that it starts and their
// children, for good. Throws std::runtime_error where the call is not known, or the kernel has no
// such filters.
void refuse(const std::string& call, int error);

}  // namespace hocket::refusing
