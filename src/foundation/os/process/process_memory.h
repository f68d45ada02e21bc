// Reading the memory of other processes. See process_vm_readv(2), ptrace(2), prctl(2).
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace hocket::os {

// Copies `bytes` from address `from` of process `pid` to `to`, once. Returns 0 or an error number:
// EPERM or ENOSYS where the kernel refuses, ESRCH where the process has ended, EFAULT where nothing
// readable lies there. Some of the bytes may have been copied then.
int read_process_memory(pid_t pid, void* to, const void* from, std::size_t bytes) noexcept;

// Whether read_process_memory of another process would find both ends of what lies here: a driver's
// memory, such as pinned memory of a GPU's, it may not read.
bool others_may_read(const void* memory, std::size_t bytes) noexcept;

// Lets this process's parent and its other descendants read its memory where Yama restricts that to
// ancestors.
void let_siblings_read() noexcept;

}  // namespace hocket::os
