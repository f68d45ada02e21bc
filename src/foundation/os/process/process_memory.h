// Reads the memory of other processes. See process_vm_readv(2), ptrace(2), prctl(2).
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace hocket::os {

// Copies `bytes` bytes from address `from` of process `pid` to `to`, once. Returns 0 or an error
// number. EPERM or ENOSYS: the kernel refuses. ESRCH: the process has ended. EFAULT: the memory is
// not readable. After an error some bytes may have been copied.
int read_process_memory(pid_t pid, void* to, const void* from, std::size_t bytes) noexcept;

// Returns whether another process's read_process_memory could read both ends of this memory. It
// cannot read a driver's memory, such as pinned memory of a GPU.
bool others_may_read(const void* memory, std::size_t bytes) noexcept;

// Allows this process's parent and its other descendants to read its memory, if Yama restricts that
// to ancestors.
void let_siblings_read() noexcept;

}  // namespace hocket::os
